import { shardOf } from '#kernel/id.ts'
import { insufficientBalance } from '#kernel/shortage.ts'
import type { AccountRef, Move, Observation, Tx } from '#kernel/task.ts'
import { houseOwner } from '#kernel/task.ts'
import { all, one, type Queryable, q, send } from '#store/query.ts'

export type Balance = { availUnits: bigint; heldUnits: bigint; settlements: bigint }
export type Book = Balance & { book: string }
export type Ledger = {
  apply(tx: Tx, moves: Move[], facts: { taskId: string | null; now: Date }): Promise<void>
  balance(on: Queryable, account: AccountRef): Promise<Balance>
  books(on: Queryable, owner: string, asset: string): Promise<Book[]>
}

/** An account was settled between its reading and its use: what was read is of unknown age. */
export class StaleObservation extends Error {}

/** Moves as the database functions read them: amounts are text, since JSON numbers end at 2^53. */
export const movesToJson = (moves: Move[]) =>
  moves.map((move) =>
    'amountUnits' in move ? { ...move, amountUnits: String(move.amountUnits), token: undefined } : move,
  )

export const observationsToJson = (seen: Observation[]) =>
  seen.map(({ account, totalUnits, settlements }) => ({
    account,
    totalUnits: String(totalUnits),
    settlements: String(settlements),
    house: houseOwner,
  }))

type Raised = { asset: string; required: string; available: string }

/** Turns what the ledger's functions raise into what the callers know. */
export function ledgerFailure(error: unknown, moves: Move[]): unknown {
  const { code, detail } = error as { code?: string; detail?: string }
  if (code === 'PT002') return new StaleObservation()
  if (code !== 'PT001') return error
  const { asset, required, available } = JSON.parse(detail ?? '{}') as Raised
  const hold = moves.find((move) => move.move === 'hold' && move.debit.asset === asset)
  // A transfer of the gateway's own names no token; units are figures of no decimals.
  const token = hold?.move === 'hold' ? hold.token : { symbol: asset, decimals: 0, address: asset }
  return insufficientBalance(token, {
    requiredUnits: BigInt(required),
    availableUnits: BigInt(available),
  })
}

const ownerOf = (moves: Move[]): string =>
  moves
    .flatMap((move) => ('debit' in move ? [move.debit.owner, move.credit.owner] : []))
    .find((owner) => owner !== houseOwner) ?? houseOwner

export const ledger: Ledger = {
  async apply(tx, moves, { taskId, now }) {
    const values = [JSON.stringify(movesToJson(moves)), taskId, shardOf(ownerOf(moves)), now]
    await send(tx, 'select ledger_apply($1::jsonb, $2::uuid, $3, $4)', values).catch((error: unknown) => {
      throw ledgerFailure(error, moves)
    })
  },

  async balance(on, { owner, asset, book }) {
    const row = await one(
      on,
      q
        .selectFrom('account')
        .select(['avail', 'held', 'settlements'])
        .where('owner', '=', owner)
        .where('asset', '=', asset)
        .where('book', '=', book),
    )
    if (!row) return { availUnits: 0n, heldUnits: 0n, settlements: 0n }
    return {
      availUnits: BigInt(row.avail),
      heldUnits: BigInt(row.held),
      settlements: BigInt(row.settlements),
    }
  },

  async books(on, owner, asset) {
    const rows = await all(
      on,
      q
        .selectFrom('account')
        .select(['book', 'avail', 'held', 'settlements'])
        .where('owner', '=', owner)
        .where('asset', '=', asset)
        .orderBy('id'),
    )
    return rows.map(({ book, avail, held, settlements }) => ({
      book,
      availUnits: BigInt(avail),
      heldUnits: BigInt(held),
      settlements: BigInt(settlements),
    }))
  },
}
