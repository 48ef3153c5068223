"""Every kind of input, and that the schedule belongs to it."""

import meshio
import numpy as np
import pytest
import scipy.sparse

import conset


def plate(side: int) -> meshio.Mesh:
    """A square of triangles with its boundary lines, as mesh generators write it."""
    n = side + 1
    x, y = np.meshgrid(np.arange(n), np.arange(n))
    points = np.column_stack([x.ravel(), y.ravel(), np.zeros(n * n)]).astype(float)
    corner = (np.arange(side)[:, None] * n + np.arange(side)).ravel()
    a = np.column_stack([corner, corner + 1, corner + n])
    b = np.column_stack([corner + 1, corner + n + 1, corner + n])
    bottom = np.column_stack([np.arange(side), np.arange(1, n)])
    return meshio.Mesh(points, [("line", bottom), ("triangle", a), ("triangle", b)])


def shared_nodes(cells, parts):
    """Which parts use each node, counted independently of conset."""
    users = {}
    for element, part in zip(cells, parts):
        for node in element:
            users.setdefault(int(node), set()).add(int(part))
    return users


def test_a_mesh_of_meshio():
    mesh = plate(12)
    schedule = conset.compile(mesh, "iwarp:2x2")
    assert schedule.inventory["elements"] == [
        {"type": "2-node line", "count": 12, "attached": 12},
        {"type": "3-node triangle", "count": 288, "attached": 0},
    ]
    # One part for each cell of meshio, in the order of its blocks.
    parts = schedule.item_parts
    assert len(parts) == 12 + 288
    lines, *triangles = np.split(parts, np.cumsum([len(block) for block in mesh.cells])[:-1])
    elements = np.concatenate([block.data for block in mesh.cells[1:]])
    users = shared_nodes(elements, np.concatenate(triangles))
    for ends, part in zip(mesh.cells[0].data, lines):
        assert all(int(part) in users[int(node)] for node in ends)
    # The connections are exactly the pairs of parts that share nodes, with these nodes.
    expected = {}
    for node, by in users.items():
        for source in by:
            for target in by - {source}:
                expected.setdefault((source, target), []).append(node)
    part_of = {int(cell): part for part, cell in enumerate(schedule.part_cells)}
    found, lists = {}, schedule.node_lists
    for row, (source, target, words) in enumerate(zip(*schedule.connections)):
        nodes = lists.nodes[lists.offsets[row] : lists.offsets[row + 1]]
        assert len(nodes) == words
        found[part_of[int(source)], part_of[int(target)]] = sorted(map(int, nodes))
    assert found == {pair: sorted(nodes) for pair, nodes in expected.items()}
    assert np.array_equal(schedule.item_cells, schedule.part_cells[parts])
    (run,) = schedule.run()
    assert run.payload_ok and run.clocks >= schedule.bound.clocks
    # The parts can be written as cell data.
    mesh.cell_data["part"] = np.split(parts, np.cumsum([len(b) for b in mesh.cells])[:-1])


def test_a_mesh_of_meshio_is_that_of_its_file(tmp_path):
    mesh = plate(8)
    path = tmp_path / "plate.vtu"
    mesh.write(path)
    of_file, of_mesh = (conset.compile(source, "iwarp:2x2") for source in (path, mesh))
    assert np.array_equal(of_file.item_parts, of_mesh.item_parts)
    for a, b in zip(of_file.connections, of_mesh.connections):
        assert np.array_equal(a, b)


def test_polyhedra_and_unknown_cells_of_meshio():
    cube = [[0, 1, 2, 3], [4, 5, 6, 7], [0, 1, 5, 4], [1, 2, 6, 5], [2, 3, 7, 6], [3, 0, 4, 7]]
    above = [[node + 4 for node in face] for face in cube]
    mesh = meshio.Mesh(np.zeros((12, 3)), [("polyhedron8", [cube, above])])
    schedule = conset.compile(mesh, "ring:3", parts=2)
    assert schedule.connections.words.tolist() == [4, 4]
    # Only the attributes matter, so the package does not depend on meshio.
    class Block:
        type = "blob"
        data = np.zeros((1, 3), int)

    class Mesh:
        points = np.zeros((3, 3))
        cells = [Block]

    with pytest.raises(conset.InputError, match=r"cells\[0\]: `blob` is not a cell type"):
        conset.compile(Mesh)
    Block.type, Block.data = "triangle", np.array([[0, 1, 3]])
    with pytest.raises(conset.InputError, match="node 3 of 3"):
        conset.compile(Mesh)
    Block.data = np.array([[0, 1, -1]])
    with pytest.raises(conset.InputError, match="node -1, expected 0 to 2"):
        conset.compile(Mesh)


def test_a_matrix_of_scipy():
    n = 60
    ends = [-np.ones(n - 1), 2 * np.ones(n), -np.ones(n - 1)]
    matrix = scipy.sparse.diags(ends, [-1, 0, 1], format="coo")
    schedule = conset.compile(matrix, "ring:4")
    parts = schedule.item_parts
    assert len(parts) == n and set(parts.tolist()) == {0, 1, 2, 3}
    # A product of matrix and vector in which every part uses only its own entries and those that
    # the schedule brings.
    csr = matrix.tocsr()
    x = np.arange(1.0, n + 1)
    lists, cells = schedule.node_lists, schedule.part_cells
    local = {int(cells[part]): np.where(parts == part, x, np.nan) for part in range(4)}
    sent = {cell: values.copy() for cell, values in local.items()}
    for row, (source, target, _) in enumerate(zip(*schedule.connections)):
        nodes = lists.nodes[lists.offsets[row] : lists.offsets[row + 1]]
        local[int(target)][nodes] = sent[int(source)][nodes]
    result = np.empty(n)
    for row in range(n):
        columns = csr.indices[csr.indptr[row] : csr.indptr[row + 1]]
        values = csr.data[csr.indptr[row] : csr.indptr[row + 1]]
        result[row] = values @ local[int(cells[parts[row]])][columns]
    assert np.array_equal(result, csr @ x)


def test_matrices_in_any_form_are_the_same():
    rows, columns = np.array([0, 0, 1, 1, 2, 2, 0]), np.array([1, 0, 2, 1, 0, 2, 1])
    data = np.ones(7)
    matrix = scipy.sparse.coo_array((data, (rows, columns)), shape=(3, 3))
    csr = scipy.sparse.csr_matrix(matrix)
    unsorted = scipy.sparse.csr_matrix((csr.data, csr.indices[::-1].copy(), csr.indptr[:]))
    before = unsorted.indices.copy()
    schedules = [conset.compile(m, "ring:3") for m in (matrix, csr, csr.tocsc())]
    for schedule in schedules[1:]:
        assert np.array_equal(schedule.connections.words, schedules[0].connections.words)
    conset.compile(unsorted, "ring:3")
    assert np.array_equal(unsorted.indices, before), "the matrix of the caller is unchanged"
    with pytest.raises(conset.InputError, match="<matrix>.*square"):
        conset.compile(scipy.sparse.csr_matrix((3, 4)), "ring:3")


def test_a_partition_is_an_array_or_a_file(tmp_path):
    matrix = scipy.sparse.eye(6, k=1) + scipy.sparse.eye(6, k=-1)
    parts = np.array([1, 1, 0, 0, 2, 2])
    schedule = conset.compile(matrix, "ring:4", partition=parts)
    assert np.array_equal(schedule.item_parts, parts)
    file = tmp_path / "parts"
    file.write_text("".join(f"{part}\n" for part in parts))
    again = conset.compile(matrix, "ring:4", partition=file)
    assert np.array_equal(again.part_cells, schedule.part_cells)
    with pytest.raises(conset.InputError, match="--partition.*5 lines for 6 items"):
        conset.compile(matrix, "ring:4", partition=parts[:5])


def test_connections_are_an_array():
    edges = np.array([[0, 1, 20], [1, 2, 30], [3, 0, 7]])
    schedule = conset.compile(edges, "ring:4")
    for column, array in zip(edges.T, schedule.connections):
        assert np.array_equal(column, array)
    assert schedule.item_parts is None and schedule.node_lists is None
    uniform = conset.compile(edges[:, :2].tolist(), "ring:4", words=5)
    assert uniform.connections.words.tolist() == [5, 5, 5]
    placed = conset.compile(edges, "ring:4", placement="best")
    assert sorted(placed.part_cells.tolist()) == [0, 1, 2, 3]
    assert conset.compile(np.empty((0, 3), int), "ring:4").phases == 0
    with pytest.raises(conset.InputError, match=r"connections\[0\].source: -1"):
        conset.compile([[-1, 2]], "ring:4")
    with pytest.raises(conset.InputError, match=r"connections\[0\].words: 0 words"):
        conset.compile([[1, 2, 0]], "ring:4")
    with pytest.raises(conset.InputError, match="shape"):
        conset.compile(np.zeros((2, 4), int), "ring:4")
    with pytest.raises(TypeError, match="cannot be compiled"):
        conset.compile(np.zeros((2, 2)), "ring:4")


def test_patterns_and_machines(tmp_path):
    by_name = conset.compile("pattern:ring-shift:2", "ring:6", words=9)
    by_value = conset.compile(conset.Pattern("ring-shift:2", words=9), "ring:6")
    assert np.array_equal(by_name.connections.target, by_value.connections.target)
    assert by_name.connections.words.tolist() == [9] * 6
    whole = conset.compile("pattern:all-to-all", "iwarp:4x4", params={"channels_per_cell": 4})
    assert whole.machine["channels_per_cell"] == 4
    around = conset.compile([[0, 1, 5]], "ring:4", dead=[2, (1, 0)])
    assert around.routes.cells.tolist() == [0, 1]
    with pytest.raises(conset.InputError, match="c2"):
        conset.compile([[0, 2, 5]], "ring:4", dead=[2])
    # The machine that a file names is the default.
    first = conset.compile([[0, 1, 5]], "ring:5")
    first.save(tmp_path / "five.json")
    reused = conset.compile([[0, 1, 5], [1, 2, 5]], "ring:5", reuse=first)
    assert reused.summary["sets"][0]["reuse"]


def test_halos_of_elements_and_words_per_node(tmp_path):
    mesh = plate(6)
    mesh.cells = mesh.cells[1:]
    elements = np.concatenate([block.data for block in mesh.cells])
    schedule = conset.compile(mesh, "iwarp:2x2", halo="faces")
    parts, cells, lists = schedule.item_parts, schedule.part_cells, schedule.node_lists
    # The elements of other parts that share an edge, counted independently.
    sides = {}
    for element, corners in enumerate(elements.tolist()):
        for a, b in zip(corners, corners[1:] + corners[:1]):
            sides.setdefault(frozenset((a, b)), []).append(element)
    expected = set()
    for pair in sides.values():
        for a, b in (pair, pair[::-1]) if len(pair) == 2 else ():
            if parts[a] != parts[b]:
                expected.add((int(cells[parts[a]]), int(cells[parts[b]]), a))
    found = set()
    for row, (source, target, _) in enumerate(zip(*schedule.connections)):
        for element in lists.nodes[lists.offsets[row] : lists.offsets[row + 1]].tolist():
            found.add((int(source), int(target), element))
    assert found == expected
    wider = conset.compile(mesh, "iwarp:2x2", halo="faces", layers=2, partition=parts)
    assert wider.connections.words.sum() > schedule.connections.words.sum()
    # Words per node: a number, an array, a file. The lists are in step with the words.
    fixed = dict(machine="iwarp:2x2", partition=parts)
    one = conset.compile(mesh, **fixed)
    six = conset.compile(mesh, words_per_node=6, **fixed)
    assert np.array_equal(six.connections.words, 6 * one.connections.words)
    assert np.array_equal(np.diff(six.node_lists.offsets), six.connections.words)
    weights = np.arange(1, len(mesh.points) + 1) % 3 + 1
    file = tmp_path / "words"
    file.write_text("".join(f"{weight}\n" for weight in weights))
    for words in (weights, file):
        weighted = conset.compile(mesh, words_per_node=words, **fixed)
        assert weighted.connections.words.sum() == weights[one.node_lists.nodes].sum()
    with pytest.raises(conset.InputError, match="'--words-per-node'"):
        conset.compile(mesh, words_per_node=0, **fixed)
    with pytest.raises(conset.InputError, match="--words-per-node:"):
        conset.compile(mesh, words_per_node=weights[1:], **fixed)
    with pytest.raises(conset.InputError, match="'--halo'"):
        conset.compile(mesh, halo="corners", **fixed)


def test_numbers_of_nodes_are_those_of_the_input(meshes, tmp_path):
    of_mesh = conset.compile(plate(6), "iwarp:2x2").node_lists
    assert np.array_equal(of_mesh.numbers, of_mesh.nodes), "meshio counts from 0"
    schedule = conset.compile(meshes / "plate.msh", "iwarp:2x2")
    lists = schedule.node_lists
    assert np.array_equal(lists.numbers, lists.nodes + 1), "this file counts from 1"
    # The schedule has the cell of each part and the numbers of its nodes.
    schedule.save(tmp_path / "plate.json")
    loaded = conset.load(tmp_path / "plate.json")
    assert np.array_equal(loaded.part_cells, schedule.part_cells)
    assert np.array_equal(loaded.node_lists.numbers, lists.numbers)
    assert loaded.item_parts is None and loaded.item_cells is None


def test_a_written_partition_is_read_by_meshio(meshes, command, tmp_path):
    text, grid = tmp_path / "plate.txt", tmp_path / "plate.vtu"
    for file in (text, grid):
        made = command("compile", meshes / "plate.msh", "--machine", "iwarp:4x4", "--write-partition", file)
        assert made.returncode == 0, made.stderr
    rows = np.loadtxt(text, dtype=int, comments="#")
    read = meshio.read(grid)
    for column, name in enumerate(("number", "part", "cell")):
        (values,) = read.cell_data[name]
        assert np.array_equal(values, rows[:, column]), name
    schedule = conset.compile(meshes / "plate.msh", "iwarp:4x4")
    assert np.array_equal(read.cell_data["part"][0], schedule.item_parts)
    assert np.array_equal(read.cell_data["cell"][0], schedule.item_cells)
    # The mesh is that of the file.
    original = meshio.read(meshes / "plate.msh")
    assert np.array_equal(read.points, original.points)
    (triangles,) = read.cells
    assert np.array_equal(triangles.data, original.get_cells_type("triangle"))


def test_the_partition_is_searched(meshes):
    first = conset.compile(meshes / "plate.msh", "iwarp:4x4", max_partitions=1)
    best = conset.compile(meshes / "plate.msh", "iwarp:4x4", max_partitions=8, imbalance=5)
    assert first.summary["parts"]["partition"]["looked_at"] == 1
    assert best.summary["parts"]["partition"]["looked_at"] > 1
    assert best.clocks <= first.clocks
