import { shardOf } from '#kernel/id.ts'
import { insufficientBalance } from '#kernel/insufficient-balance.ts'
import type { AccountRef, Move, Tx } from '#kernel/task.ts'
import { systemOwner } from '#kernel/task.ts'
import { builder, fetchOne, type Queryable, query } from '#store/query.ts'

export type Balance = { availUnits: bigint; heldUnits: bigint; version: bigint }
export type SubAccount = Balance & { subAccount: string }
export type Ledger = {
  apply(tx: Tx, moves: Move[], facts: { taskId: string | null; now: Date }): Promise<void>
  balance(db: Queryable, account: AccountRef): Promise<Balance>
  /** Those that have units, available or held: an owner may have emptied any number of others. In the order of names. */
  subAccounts(db: Queryable, owner: string, asset: string): Promise<SubAccount[]>
}

/** The JSON of moves for the database functions: amounts are text, since JSON numbers are exact only to 2^53. */
export const movesToJson = (moves: Move[]) =>
  moves.map((move) =>
    'amountUnits' in move ? { ...move, amountUnits: String(move.amountUnits), token: undefined } : move,
  )

type Raised = { asset: string; required: string; available: string }

/** Translates the errors that the ledger functions raise. */
export function toLedgerError(error: unknown, moves: Move[]): unknown {
  const { code, detail } = error as { code?: string; detail?: string }
  if (code !== 'PT001') return error
  const { asset, required, available } = JSON.parse(detail ?? '{}') as Raised
  const hold = moves.find((move) => move.move === 'hold' && move.debit.asset === asset)
  // An internal transfer names no token; its units have no decimals.
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

export const ledger: Ledger = {
  async apply(tx, moves, { taskId, now }) {
    const values = [JSON.stringify(movesToJson(moves)), taskId, shardOf(ownerOf(moves)), now]
    await query(tx, 'select ledger_apply($1::jsonb, $2::uuid, $3, $4)', values).catch((error: unknown) => {
      throw toLedgerError(error, moves)
    })
  },

  async balance(db, { owner, asset, subAccount }) {
    const row = await fetchOne(
      db,
      builder
        .selectFrom('account')
        .select(['avail', 'held', 'version'])
        .where('owner', '=', owner)
        .where('asset', '=', asset)
        .where('sub_account', '=', subAccount),
    )
    if (!row) return { availUnits: 0n, heldUnits: 0n, version: 0n }
    return {
      availUnits: BigInt(row.avail),
      heldUnits: BigInt(row.held),
      version: BigInt(row.version),
    }
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
