import type pg from 'pg'
import { createBatchLoader } from '#kernel/async/batch-loader.ts'
import { shardOf } from '#kernel/id.ts'
import { insufficientBalance } from '#kernel/money/insufficient-balance.ts'
import type { DrawnPart } from '#kernel/task/ledger-draw.ts'
import { type AccountRef, type Move, systemOwner, type Tx } from '#kernel/task/task.ts'
import { isPool, type Queryable, query } from '#store/query.ts'

export type Balance = { availUnits: bigint; heldUnits: bigint; version: bigint }
export type SubAccount = Balance & { subAccount: string }
export type Ledger = {
  apply(tx: Tx, moves: Move[], facts: { taskId: string | null; now: Date }): Promise<void>
  balance(db: Queryable, account: AccountRef): Promise<Balance>
  /**
   * Returns the pending holds that the acceptance of a task took from several accounts (its draw), in the order in
   * which they were taken.
   */
  drawn(db: Queryable, taskId: string): Promise<DrawnPart[]>
  /** Lists an owner's sub-accounts with available or held units, by name; there may be many emptied ones. */
  subAccounts(db: Queryable, owner: string, asset: string): Promise<SubAccount[]>
}

/** Amounts are text, since JSON numbers are exact only to 2^53. */
export const movesToJson = (moves: Move[]) =>
  moves.map((move) =>
    'amountUnits' in move ? { ...move, amountUnits: String(move.amountUnits), token: undefined } : move,
  )

type Raised = { asset: string; required: string; available: string }

export function toLedgerError(error: unknown, moves: Move[]): unknown {
  const { code, detail } = error as { code?: string; detail?: string }
  if (code !== 'PT001') return error
  const { asset, required, available } = JSON.parse(detail ?? '{}') as Raised
  const hold = moves.find((move) => move.move === 'hold' && move.debit.asset === asset)
  // An internal transfer names no token, so its units have no decimals.
  const token = hold?.move === 'hold' ? hold.token : { symbol: asset, decimals: 0, address: asset }
  return insufficientBalance(token, {
    requiredUnits: BigInt(required),
    availableUnits: BigInt(available),
  })
}

const ownerOf = (moves: Move[]): string =>
  moves
    .flatMap((move) => ('debit' in move ? [move.debit.owner, move.credit.owner] : []))
    .find((owner) => owner !== systemOwner) ?? systemOwner

const empty: Balance = { availUnits: 0n, heldUnits: 0n, version: 0n }
/** Requests that are admitted together read their balances in one statement. */
const loaders = new WeakMap<pg.Pool, (key: string) => Promise<Balance | undefined>>()
const separator = '\n'
const keyOf = ({ owner, asset, subAccount }: AccountRef) => [owner, asset, subAccount].join(separator)
function accountOf(key: string): AccountRef {
  const [owner = '', asset = '', subAccount = ''] = key.split(separator)
  return { owner, asset, subAccount }
}

type BalanceRow = {
  owner: string
  asset: string
  sub_account: string
  avail: string
  held: string
  version: bigint
}

async function readBalances(db: Queryable, accounts: readonly AccountRef[]): Promise<Map<string, Balance>> {
  const rows = await query<BalanceRow>(
    db,
    `select owner, asset, sub_account, avail, held, version from account
     join unnest($1::uuid[], $2::text[], $3::text[]) k (owner, asset, sub_account) using (owner, asset, sub_account)`,
    [
      accounts.map(({ owner }) => owner),
      accounts.map(({ asset }) => asset),
      accounts.map(({ subAccount }) => subAccount),
    ],
  )
  return new Map(
    rows.map(({ owner, asset, sub_account: subAccount, avail, held, version }) => [
      keyOf({ owner, asset, subAccount }),
      { availUnits: BigInt(avail), heldUnits: BigInt(held), version: BigInt(version) },
    ]),
  )
}

export const ledger: Ledger = {
  async apply(tx, moves, { taskId, now }) {
    const values = [JSON.stringify(movesToJson(moves)), taskId, shardOf(ownerOf(moves)), now]
    await query(tx, 'select ledger_apply($1::jsonb, $2::uuid, $3, $4)', values).catch((error: unknown) => {
      throw toLedgerError(error, moves)
    })
  },

  async balance(db, account) {
    if (!isPool(db)) return (await readBalances(db, [account])).get(keyOf(account)) ?? empty
    let load = loaders.get(db)
    if (!load) {
      const loadKeys = (keys: readonly string[]) => readBalances(db, keys.map(accountOf))
      load = createBatchLoader({ load: loadKeys, loadsMax: 2, keysMax: 100 })
      loaders.set(db, load)
    }
    return (await load(keyOf(account))) ?? empty
  },

  async drawn(db, taskId) {
    const rows = await query<{ key: string; amount: string }>(
      db,
      `select key, amount from transfer where task_id = $1 and state = 'pending' and starts_with(key, $2) order by id`,
      [taskId, `${taskId}:draw:`],
    )
    return rows.map(({ key, amount }) => ({ key, amountUnits: BigInt(amount) }))
  },

  async subAccounts(db, owner, asset) {
    const rows = await query<{ sub_account: string; avail: string; held: string; version: bigint }>(
      db,
      `select sub_account, avail, held, version from account
       where owner = $1 and asset = $2 and has_units order by sub_account collate "C"`,
      [owner, asset],
    )
    return rows.map(({ sub_account, avail, held, version }) => ({
      subAccount: sub_account,
      availUnits: BigInt(avail),
      heldUnits: BigInt(held),
      version: BigInt(version),
    }))
  },
}
