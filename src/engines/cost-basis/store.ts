import { fixedPointDecimals, fixedPointOne, fromUnits, mulDiv } from '#kernel/money.ts'
import type { Tx } from '#kernel/task.ts'
import { type Queryable, query } from '#store/query.ts'

/** The average cost of the tokens that a user bought with swaps of the gateway. */

export type TokenAmount = { chainId: string; address: string; decimals: number; units: bigint }
export type SwapFill = {
  userId: string
  sold: TokenAmount
  bought: TokenAmount
  /** What the swap was worth, in units of 1e-18 dollars. */
  value: bigint
  at: Date
}

const nameOf = (address: string): string => (address.startsWith('0x') ? address.toLowerCase() : address)

/** Runs in the commit that ends the swap. Units that were sold take their share of the cost with them. */
export async function recordFill(tx: Tx, { userId, sold, bought, value, at }: SwapFill): Promise<void> {
  await query(
    tx,
    `update cost_basis set updated_at = $5, units = greatest(units - $4::numeric, 0),
       cost = case when units = 0 then 0 else div(cost * greatest(units - $4::numeric, 0), units) end
     where user_id = $1 and chain_id = $2 and token = $3`,
    [userId, sold.chainId, nameOf(sold.address), String(sold.units), at],
  )
  await query(
    tx,
    `insert into cost_basis as b (user_id, chain_id, token, units, cost, updated_at)
       values ($1, $2, $3, $4::numeric, $5::numeric, $6)
     on conflict (user_id, chain_id, token) do update
       set units = b.units + excluded.units, cost = b.cost + excluded.cost, updated_at = excluded.updated_at`,
    [userId, bought.chainId, nameOf(bought.address), String(bought.units), String(value), at],
  )
}

/** Dollars per whole token, rounded down; undefined where the user bought none with the gateway. */
export async function entryPriceOf(
  db: Queryable,
  userId: string,
  { chainId, address, decimals }: Omit<TokenAmount, 'units'>,
): Promise<string | undefined> {
  const [row] = await query<{ units: string; cost: string }>(
    db,
    'select units, cost from cost_basis where user_id = $1 and chain_id = $2 and token = $3',
    [userId, chainId, nameOf(address)],
  )
  if (!row) return undefined
  const [units, cost] = [BigInt(row.units), BigInt(row.cost)]
  if (units === 0n || cost === 0n) return undefined
  return fromUnits(mulDiv(cost, 10n ** BigInt(decimals), units), fixedPointDecimals)
}

type Valued = { isUsdc: boolean; decimals: number; units: bigint }

/** USDC counts as dollars; without it on either side the value is the one that the swap was accepted with. */
export function swapValue(sold: Valued, bought: Valued, acceptedMicros: bigint): bigint {
  const dollars = [sold, bought].find(({ isUsdc }) => isUsdc)
  if (dollars) return mulDiv(dollars.units, fixedPointOne, 10n ** BigInt(dollars.decimals))
  return mulDiv(acceptedMicros, fixedPointOne, 1_000_000n)
}
