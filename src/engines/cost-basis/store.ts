import { canonicalAddress } from '#kernel/money/chains.ts'
import { fixedPointDecimals, fixedPointOne, fromUnits, mulDiv } from '#kernel/money/money.ts'
import type { Tx } from '#kernel/task/task.ts'
import { type Queryable, query } from '#store/query.ts'

/** The average cost of the tokens that a user bought through swaps of the gateway. */

export type TokenAmount = { chainId: string; address: string; decimals: number; units: bigint }
export type SwapFill = {
  userId: string
  sold: TokenAmount
  bought: TokenAmount
  /** The worth of the swap, in units of 1e-18 dollars. */
  value: bigint
  at: Date
}

/** The largest value of a column. A hostile token can report any number, and must not keep a swap from ending. */
const unitsMax = 10n ** 78n - 1n

/** Records a swap in the commit that ends it. A sale reduces the cost in proportion to the units that were sold. */
export async function recordFill(tx: Tx, { userId, sold, bought, value, at }: SwapFill): Promise<void> {
  await query(
    tx,
    `update cost_basis set updated_at = $5, units = greatest(units - $4::numeric, 0),
       cost = case when units = 0 then 0 else div(cost * greatest(units - $4::numeric, 0), units) end,
       realized = case when units = 0 then realized else coalesce(realized, 0)
         + div($6::numeric * least(units, $4::numeric), $4::numeric)
         - (cost - div(cost * greatest(units - $4::numeric, 0), units)) end
     where user_id = $1 and chain_id = $2 and token = $3 and $4::numeric > 0`,
    [userId, sold.chainId, canonicalAddress(sold.address), String(sold.units), at, String(value)],
  )
  await query(
    tx,
    `insert into cost_basis as b (user_id, chain_id, token, units, cost, updated_at)
       values ($1, $2, $3, $4::numeric, $5::numeric, $6)
     on conflict (user_id, chain_id, token) do update
       set units = least(b.units + excluded.units, $7::numeric), cost = least(b.cost + excluded.cost, $7::numeric),
         updated_at = excluded.updated_at`,
    [
      userId,
      bought.chainId,
      canonicalAddress(bought.address),
      String(bought.units < unitsMax ? bought.units : unitsMax),
      String(value),
      at,
      String(unitsMax),
    ],
  )
}

/** How much of a token a user bought and has not sold, and what its sales have brought beyond their cost. */
export type CostBasis = {
  chainId: string
  token: string
  units: bigint
  cost: bigint
  realized: bigint | null
}

export async function basesOf(db: Queryable, userId: string): Promise<CostBasis[]> {
  const rows = await query<{
    chain_id: string
    token: string
    units: string
    cost: string
    realized: string | null
  }>(db, 'select chain_id, token, units, cost, realized from cost_basis where user_id = $1', [userId])
  return rows.map(({ chain_id: chainId, token, units, cost, realized }) => ({
    chainId,
    token,
    units: BigInt(units),
    cost: BigInt(cost),
    realized: realized === null ? null : BigInt(realized),
  }))
}

/** Returns dollars per whole token, rounded down, or undefined if the user bought none through the gateway. */
export async function entryPriceOf(
  db: Queryable,
  userId: string,
  { chainId, address, decimals }: Omit<TokenAmount, 'units'>,
): Promise<string | undefined> {
  const [row] = await query<{ units: string; cost: string }>(
    db,
    'select units, cost from cost_basis where user_id = $1 and chain_id = $2 and token = $3',
    [userId, chainId, canonicalAddress(address)],
  )
  if (!row) return undefined
  const [units, cost] = [BigInt(row.units), BigInt(row.cost)]
  if (units === 0n || cost === 0n) return undefined
  return fillPrice({ units, decimals }, cost)
}

/** The highest price, in units of 1e-18 dollars: the text of a decimal has no room for more digits. */
const priceMax = 10n ** 56n

/** Returns the price in dollars per whole token, rounded down, of a fill that was worth `value`. */
export function fillPrice({ units, decimals }: { units: bigint; decimals: number }, value: bigint): string {
  const price = mulDiv(value, 10n ** BigInt(decimals), units)
  return fromUnits(price < priceMax ? price : priceMax, fixedPointDecimals)
}

type Valued = { isUsdc: boolean; decimals: number; units: bigint }

/** Returns the worth of a swap. USDC counts as dollars; a swap without USDC has its worth at acceptance. */
export function swapValue(sold: Valued, bought: Valued, acceptedMicros: bigint): bigint {
  const dollars = [sold, bought].find(({ isUsdc }) => isUsdc)
  if (dollars) return mulDiv(dollars.units, fixedPointOne, 10n ** BigInt(dollars.decimals))
  return mulDiv(acceptedMicros, fixedPointOne, 1_000_000n)
}
