import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type Hex, isEnded, type SolverRequest } from './request.ts'

const schema = `
  CREATE TABLE IF NOT EXISTS request (
    id TEXT PRIMARY KEY, route TEXT NOT NULL, status TEXT NOT NULL, is_open INTEGER NOT NULL, parent_id TEXT,
    deposit_key TEXT UNIQUE, deposit_chain INTEGER, origin_chain INTEGER NOT NULL, created_ms INTEGER NOT NULL, expires_ms INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL, payout_chain INTEGER, payout_nonce INTEGER, data TEXT NOT NULL
  );
  CREATE INDEX IF NOT EXISTS request_nonce ON request (payout_chain, payout_nonce);
  CREATE INDEX IF NOT EXISTS request_open ON request (is_open, status);
  CREATE INDEX IF NOT EXISTS request_parent ON request (parent_id);
  CREATE INDEX IF NOT EXISTS request_updated ON request (updated_ms);
  CREATE INDEX IF NOT EXISTS request_order ON request (data ->> '$.orderId');
  CREATE TABLE IF NOT EXISTS setting (name TEXT PRIMARY KEY, value TEXT NOT NULL);
`
/** A quote without a deposit is deleted this long after it expired, an ended request when there are too many. */
const expiredMs = 3_600_000
const endedMax = 20_000

type Row = { data: string }

export type Store = ReturnType<typeof openStore>

/**
 * Requests of the solver. Each write is committed before the call returns, so that a killed process knows all that it
 * has signed.
 */
export const openStore = (dataDir: string) => {
  const db = new DatabaseSync(join(dataDir, 'solver.sqlite'))
  db.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL')
  db.exec(schema)
  const save = db.prepare('INSERT OR REPLACE INTO request VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)')
  const byId = db.prepare('SELECT data FROM request WHERE id = ?')
  const byOrder = db.prepare("SELECT data FROM request WHERE data ->> '$.orderId' = ?")
  const byParent = db.prepare('SELECT data FROM request WHERE parent_id = ? ORDER BY created_ms, id')
  const byDeposit = db.prepare('SELECT data FROM request WHERE deposit_key = ?')
  const newest = db.prepare('SELECT data FROM request ORDER BY created_ms DESC, id LIMIT ?')
  const active = db.prepare(
    'SELECT data FROM request WHERE is_open = 1 AND deposit_key IS NOT NULL ORDER BY created_ms, id',
  )
  const waitingSwaps = db.prepare(
    "SELECT id, origin_chain FROM request WHERE is_open = 1 AND status = 'waiting' AND route = 'swap' AND expires_ms > ?",
  )
  const newestQuote = db.prepare(
    "SELECT max(created_ms) AS ms FROM request WHERE is_open = 1 AND status = 'waiting'",
  )
  const deposits = db.prepare(
    'SELECT data FROM request WHERE deposit_chain = ? AND is_open = 1 AND deposit_key IS NOT NULL',
  )
  const dropExpired = db.prepare("DELETE FROM request WHERE status = 'waiting' AND expires_ms < ?")
  const dropEnded = db.prepare(
    'DELETE FROM request WHERE is_open = 0 AND id NOT IN (SELECT id FROM request ORDER BY updated_ms DESC LIMIT ?)',
  )
  const readSetting = db.prepare('SELECT value FROM setting WHERE name = ?')
  const writeSetting = db.prepare('INSERT OR REPLACE INTO setting VALUES (?, ?)')

  const lastNonce = db.prepare('SELECT max(payout_nonce) AS nonce FROM request WHERE payout_chain = ?')

  const parse = (row: unknown): SolverRequest => JSON.parse((row as Row).data) as SolverRequest
  const parseOptional = (row: unknown): SolverRequest | undefined =>
    row === undefined ? undefined : parse(row)

  return {
    save: (request: SolverRequest): SolverRequest => {
      save.run(
        request.id,
        request.route,
        request.status,
        isEnded(request) ? 0 : 1,
        request.parentId ?? null,
        request.deposit?.key ?? null,
        request.deposit?.chainId ?? null,
        request.originChainId,
        request.createdMs,
        request.expiresMs,
        request.history.at(-1)?.atMs ?? request.createdMs,
        request.payout?.chainId ?? null,
        request.payout?.attempts.at(-1)?.nonce ?? null,
        JSON.stringify(request),
      )
      return request
    },
    find: (id: string): SolverRequest | undefined => parseOptional(byId.get(id)),
    findByOrder: (orderId: Hex): SolverRequest | undefined => parseOptional(byOrder.get(orderId)),
    findByDeposit: (key: string): SolverRequest | undefined => parseOptional(byDeposit.get(key)),
    children: (id: Hex): SolverRequest[] => byParent.all(id).map(parse),
    newest: (count: number): SolverRequest[] => newest.all(count).map(parse),
    /** Requests with a deposit that have not ended. */
    active: (): SolverRequest[] => active.all().map(parse),
    /** Swaps that may still be sent. */
    waitingSwaps: (nowMs: number): { id: Hex; chainId: number }[] =>
      (waitingSwaps.all(nowMs) as { id: Hex; origin_chain: number }[]).map(
        ({ id, origin_chain: chainId }) => ({
          id,
          chainId,
        }),
      ),
    /** When the newest quote was made that nobody has used. */
    newestQuoteMs: (): number => (newestQuote.get() as { ms: number | null }).ms ?? 0,
    openDeposits: (chainId: number): SolverRequest[] => deposits.all(chainId).map(parse),
    /** The highest nonce that was signed on a chain and is still recorded. */
    lastNonce: (chainId: number): number | undefined =>
      (lastNonce.get(chainId) as { nonce: number | null }).nonce ?? undefined,
    prune: (nowMs: number): void => {
      dropExpired.run(nowMs - expiredMs)
      dropEnded.run(endedMax)
    },
    setting: (name: string): string | undefined =>
      (readSetting.get(name) as { value: string } | undefined)?.value,
    saveSetting: (name: string, value: string): void => {
      writeSetting.run(name, value)
    },
    close: (): void => db.close(),
  }
}
