"""How should we patrol, against an adversary who watches?"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "api": ["MatrixGame", "grid_game", "matrix_of", "random_twin", "street_game"],
        "bimatrix": ["Profile", "least_exploitable_pure", "lemke_howson", "support_enumeration", "vertex_enumeration"],
        "coverage": ["Coverage", "patrol_coverages"],
        "game": ["SecurityGame"],
        "graph": ["PatrolGraph", "count_walks", "graph_of_edges", "lattice", "list_walks"],
        "minimax": ["Minimax", "certificate", "minimax"],
        "oracle": ["OracleSolution", "double_oracle"],
        "regret": ["regret_matching"],
        "schedules": ["schedule_actions"],
        "solver": ["Solution", "solve"],
        "sparse": ["SparseMinimax", "sparse_minimax", "value_by_patrols"],
        "stackelberg": ["Commitment", "assignments", "commit", "commit_simple"],
    },
)
