import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

/** Number of newest transactions with body and address entries; signatures are stored for ever. */
export const bodiesMax = 20_000
const mintIdsMax = 100_000

const schema = `
  CREATE TABLE IF NOT EXISTS world (
    id INTEGER PRIMARY KEY CHECK (id = 1), version INTEGER NOT NULL, seed BLOB NOT NULL,
    genesis_ms INTEGER NOT NULL, offset_ms INTEGER NOT NULL, last_ms INTEGER NOT NULL, machine BLOB NOT NULL
  );
  CREATE TABLE IF NOT EXISTS signature (
    seq INTEGER PRIMARY KEY, signature TEXT NOT NULL UNIQUE, digest BLOB NOT NULL UNIQUE, slot INTEGER NOT NULL, time INTEGER NOT NULL, err TEXT
  );
  CREATE TABLE IF NOT EXISTS body (seq INTEGER PRIMARY KEY, wire BLOB NOT NULL, meta TEXT NOT NULL, memo TEXT);
  CREATE TABLE IF NOT EXISTS mention (
    address TEXT NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (address, seq)
  ) WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS mention_by_seq ON mention (seq);
  CREATE INDEX IF NOT EXISTS signature_by_slot ON signature (slot);
  CREATE TABLE IF NOT EXISTS minted (id TEXT PRIMARY KEY, signature TEXT NOT NULL);
`
const schemaVersion = 1

export type WorldRow = {
  seed: Uint8Array
  genesisMs: number
  offsetMs: number
  lastMs: number
  machine: Uint8Array
}
export type SignatureRow = { seq: number; signature: string; slot: number; time: number; err: string | null }
export type BodyRow = SignatureRow & { wire: Uint8Array; meta: string }
export type HistoryRow = SignatureRow & { memo: string | null }
export type NewTransaction = {
  signature: string
  /** Hash of the message: a signer may sign the same message twice, and it must run only once. */
  digest: Uint8Array
  slot: number
  time: number
  err: string | null
  wire: Uint8Array
  meta: string
  memo: string | null
  addresses: string[]
}

export type Ledger = ReturnType<typeof openLedger>

const statements = (db: DatabaseSync) => ({
  readWorld: db.prepare('SELECT * FROM world WHERE id = 1'),
  writeWorld: db.prepare('INSERT OR REPLACE INTO world VALUES (1, ?, ?, ?, ?, ?, ?)'),
  addSignature: db.prepare(
    'INSERT INTO signature (signature, digest, slot, time, err) VALUES (?, ?, ?, ?, ?)',
  ),
  addBody: db.prepare('INSERT INTO body VALUES (?, ?, ?, ?)'),
  addMention: db.prepare('INSERT OR IGNORE INTO mention VALUES (?, ?)'),
  bySignature: db.prepare('SELECT * FROM signature WHERE signature = ?'),
  processed: db.prepare('SELECT seq FROM signature WHERE signature = ? OR digest = ?'),
  bodyBySignature: db.prepare(
    'SELECT s.*, b.wire, b.meta FROM signature s JOIN body b USING (seq) WHERE s.signature = ?',
  ),
  bodiesInSlot: db.prepare(
    'SELECT s.*, b.wire, b.meta FROM signature s JOIN body b USING (seq) WHERE s.slot = ? ORDER BY seq',
  ),
  byAddress: db.prepare(`
    SELECT s.*, b.memo FROM mention m JOIN signature s USING (seq) JOIN body b USING (seq)
    WHERE m.address = ? AND m.seq < ? AND m.seq > ? AND s.slot <= ? ORDER BY m.seq DESC LIMIT ?`),
  lastSeq: db.prepare('SELECT coalesce(max(seq), 0) AS seq FROM signature'),
  dropBodies: db.prepare('DELETE FROM body WHERE seq <= ?'),
  dropMentions: db.prepare('DELETE FROM mention WHERE seq <= ?'),
  mintedById: db.prepare('SELECT signature FROM minted WHERE id = ?'),
  addMinted: db.prepare('INSERT INTO minted VALUES (?, ?)'),
  dropMinted: db.prepare('DELETE FROM minted WHERE rowid <= (SELECT max(rowid) FROM minted) - ?'),
})

/**
 * One SQLite file holds the machine's snapshot and every transaction. Writes stay in one open transaction that `save`
 * commits together with the snapshot: after kill -9 both are from the same moment. Later transactions are run again
 * from the journal of calls.
 */
export const openLedger = (dataDir: string) => {
  const db = new DatabaseSync(join(dataDir, 'solana.sqlite'))
  try {
    db.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL')
    db.exec(schema)
    db.exec('BEGIN IMMEDIATE')
  } catch (cause) {
    throw new Error(`cannot open the world in ${dataDir}; does another process hold it?`, { cause })
  }

  const queries = statements(db)

  const count = (): number => Number((queries.lastSeq.get() as { seq: number }).seq)

  return {
    world: (): WorldRow | undefined => {
      const row = queries.readWorld.get() as Record<string, unknown> | undefined
      if (row === undefined) return undefined
      if (row.version !== schemaVersion)
        throw new Error('this world was written by another version; reset it')
      return {
        seed: row.seed as Uint8Array,
        genesisMs: row.genesis_ms as number,
        offsetMs: row.offset_ms as number,
        lastMs: row.last_ms as number,
        machine: row.machine as Uint8Array,
      }
    },
    save: (row: WorldRow): void => {
      queries.writeWorld.run(schemaVersion, row.seed, row.genesisMs, row.offsetMs, row.lastMs, row.machine)
      const oldest = count() - bodiesMax
      if (oldest > 0) {
        queries.dropBodies.run(oldest)
        queries.dropMentions.run(oldest)
      }
      queries.dropMinted.run(mintIdsMax)
      db.exec('COMMIT; BEGIN IMMEDIATE')
    },
    append: (added: NewTransaction): void => {
      const { lastInsertRowid: seq } = queries.addSignature.run(
        added.signature,
        added.digest,
        added.slot,
        added.time,
        added.err,
      )
      queries.addBody.run(seq, added.wire, added.meta, added.memo)
      for (const address of added.addresses) queries.addMention.run(address, seq)
    },
    count,
    wasProcessed: (signature: string, digest: Uint8Array): boolean =>
      queries.processed.get(signature, digest) !== undefined,
    find: (signature: string): SignatureRow | undefined =>
      queries.bySignature.get(signature) as SignatureRow | undefined,
    findBody: (signature: string): BodyRow | undefined =>
      queries.bodyBySignature.get(signature) as BodyRow | undefined,
    history: (
      address: string,
      before: number,
      after: number,
      { slotMax, limit }: { slotMax: number; limit: number },
    ): HistoryRow[] => queries.byAddress.all(address, before, after, slotMax, limit) as HistoryRow[],
    inSlot: (slot: number): BodyRow[] => queries.bodiesInSlot.all(slot) as BodyRow[],
    minted: (id: string): string | undefined =>
      (queries.mintedById.get(id) as { signature: string } | undefined)?.signature,
    recordMint: (id: string, signature: string): void => {
      queries.addMinted.run(id, signature)
    },
    close: (): void => {
      db.exec('ROLLBACK')
      db.close()
    },
  }
}
