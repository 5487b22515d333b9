"""Common words in five languages, one row each: English, French, German, Spanish, Italian."""

from __future__ import annotations

LANGUAGES = ("English", "French", "German", "Spanish", "Italian")

# Shown before the question, with their translations.
SHOTS = (
    ("cheese", "fromage", "Käse", "queso", "formaggio"),
    ("water", "eau", "Wasser", "agua", "acqua"),
    ("book", "livre", "Buch", "libro", "libro"),
    ("red", "rouge", "rot", "rojo", "rosso"),
    ("bridge", "pont", "Brücke", "puente", "ponte"),
    ("cold", "froid", "kalt", "frío", "freddo"),
    ("child", "enfant", "Kind", "niño", "bambino"),
    ("paper", "papier", "Papier", "papel", "carta"),
)
# What a twin's examples reply: words of the source language, since words of the target would ask for a translation.
UNRELATED = (
    ("cloud", "nuage", "Wolke", "nube", "nuvola"),
    ("seven", "sept", "sieben", "siete", "sette"),
    ("quick", "vite", "schnell", "rápido", "rapido"),
    ("under", "sous", "unter", "debajo", "sotto"),
    ("piano", "piano", "Klavier", "piano", "pianoforte"),
    ("Tuesday", "mardi", "Dienstag", "martes", "martedì"),
    ("loud", "fort", "laut", "fuerte", "forte"),
    ("twelve", "douze", "zwölf", "doce", "dodici"),
)
NUMBERS = ("12", "7", "305", "48", "9", "61", "20", "33")  # for a source language that is not built in

WORDS = (
    ("dog", "chien", "Hund", "perro", "cane"),
    ("cat", "chat", "Katze", "gato", "gatto"),
    ("house", "maison", "Haus", "casa", "casa"),
    ("bread", "pain", "Brot", "pan", "pane"),
    ("milk", "lait", "Milch", "leche", "latte"),
    ("sun", "soleil", "Sonne", "sol", "sole"),
    ("moon", "lune", "Mond", "luna", "luna"),
    ("tree", "arbre", "Baum", "árbol", "albero"),
    ("school", "école", "Schule", "escuela", "scuola"),
    ("night", "nuit", "Nacht", "noche", "notte"),
    ("day", "jour", "Tag", "día", "giorno"),
    ("friend", "ami", "Freund", "amigo", "amico"),
    ("king", "roi", "König", "rey", "re"),
    ("queen", "reine", "Königin", "reina", "regina"),
    ("horse", "cheval", "Pferd", "caballo", "cavallo"),
    ("bird", "oiseau", "Vogel", "pájaro", "uccello"),
    ("fish", "poisson", "Fisch", "pez", "pesce"),
    ("hand", "main", "Hand", "mano", "mano"),
    ("head", "tête", "Kopf", "cabeza", "testa"),
    ("heart", "cœur", "Herz", "corazón", "cuore"),
    ("winter", "hiver", "Winter", "invierno", "inverno"),
    ("summer", "été", "Sommer", "verano", "estate"),
    ("green", "vert", "grün", "verde", "verde"),
    ("white", "blanc", "weiß", "blanco", "bianco"),
    ("black", "noir", "schwarz", "negro", "nero"),
    ("mother", "mère", "Mutter", "madre", "madre"),
    ("father", "père", "Vater", "padre", "padre"),
    ("brother", "frère", "Bruder", "hermano", "fratello"),
    ("sister", "sœur", "Schwester", "hermana", "sorella"),
    ("city", "ville", "Stadt", "ciudad", "città"),
    ("street", "rue", "Straße", "calle", "strada"),
    ("door", "porte", "Tür", "puerta", "porta"),
    ("window", "fenêtre", "Fenster", "ventana", "finestra"),
    ("table", "table", "Tisch", "mesa", "tavolo"),
    ("wine", "vin", "Wein", "vino", "vino"),
    ("meat", "viande", "Fleisch", "carne", "carne"),
    ("sugar", "sucre", "Zucker", "azúcar", "zucchero"),
    ("salt", "sel", "Salz", "sal", "sale"),
    ("flower", "fleur", "Blume", "flor", "fiore"),
    ("sea", "mer", "Meer", "mar", "mare"),
    ("river", "rivière", "Fluss", "río", "fiume"),
    ("mountain", "montagne", "Berg", "montaña", "montagna"),
    ("fire", "feu", "Feuer", "fuego", "fuoco"),
    ("earth", "terre", "Erde", "tierra", "terra"),
    ("car", "voiture", "Auto", "coche", "macchina"),
    ("train", "train", "Zug", "tren", "treno"),
    ("apple", "pomme", "Apfel", "manzana", "mela"),
    ("egg", "œuf", "Ei", "huevo", "uovo"),
    ("blue", "bleu", "blau", "azul", "blu"),
    ("yellow", "jaune", "gelb", "amarillo", "giallo"),
)

NAMES = ("Mary", "John", "Tom", "Sarah", "Anna", "Paul", "James", "Emma")


def language(name: str) -> int | None:
    """Column of a language; None for one that is not among the built-in words."""
    return LANGUAGES.index(name) if name in LANGUAGES else None


def unrelated(source: str, target: str) -> tuple[str, ...]:
    """Replies that have nothing to do with the examples' words, and are not in the target language."""
    if (column := language(source)) is not None:
        return tuple(row[column] for row in UNRELATED)
    return NUMBERS if target == "English" else tuple(row[0] for row in UNRELATED)
