"""What somebody who computes a ledger's checksums anew would do."""

from spdp.ledger.schema import Result, checksum


def reseal(db):
    """Mend the checksums of results, and the one over the whole ledger."""
    for *row, _ in db.execute("SELECT * FROM results").fetchall():
        seal = checksum(Result(*row)).hexdigest()
        db.execute("UPDATE results SET checksum = ? WHERE id = ?", (seal, row[0]))
    queries = ("SELECT * FROM acts", "SELECT * FROM entries", "SELECT id, checksum FROM results")
    lists = [db.execute(f"{query} ORDER BY id").fetchall() for query in queries]
    for number, *terms, _ in db.execute("SELECT * FROM budget").fetchall():
        seal = checksum(tuple(terms), *lists).hexdigest()
        db.execute("UPDATE budget SET checksum = ? WHERE id = ?", (seal, number))
