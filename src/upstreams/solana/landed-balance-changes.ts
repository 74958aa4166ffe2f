import { Fault } from '#kernel/contract/fault.ts'
import { accountKeysOf, decodeMessage, splitTransaction } from './message.ts'
import type { LandedTransaction } from './solana.ts'

/** Reads what a transaction in a block changed, from the balances that the chain recorded around it. */

export type BalanceDelta = { token: string; amountUnits: bigint; decimals: number }
export type Landing = {
  slot: bigint
  failure: string | undefined
  /** What the sponsor paid: the fee and rent, less what was returned. */
  sponsorLamports: bigint
  /** The net balance changes of the user's wallet; tokens whose balance did not change are left out. */
  deltas: BalanceDelta[]
  /** The changes in lamports of each address that is in the message itself. */
  lamportDeltas: ReadonlyMap<string, bigint>
}
/**
 * Returns what a transaction of another sender paid to a wallet. Native coins are counted only if the message itself
 * names the wallet, not through a lookup table.
 */
export function readArrival(landed: LandedTransaction, owner: string, native: string): Map<string, bigint> {
  const gained = new Map<string, bigint>()
  const add = (token: string, units: bigint) => gained.set(token, (gained.get(token) ?? 0n) + units)
  for (const each of landed.tokensAfter) if (each.owner === owner) add(each.mint, each.amountUnits)
  for (const each of landed.tokensBefore) if (each.owner === owner) add(each.mint, -each.amountUnits)
  const index = accountKeysOf(Buffer.from(landed.raw, 'base64')).indexOf(owner)
  const [before, after] = [landed.lamportsBefore[index], landed.lamportsAfter[index]]
  if (before !== undefined && after !== undefined) add(native, after - before)
  return new Map([...gained].filter(([, units]) => units > 0n))
}

type LandingOrder = { raw: string; account: string; native: BalanceDelta['token']; nativeDecimals: number }

/** Reads what a landed transaction changed. `raw` is the stored bytes; a reply about other bytes does not count. */
export function readLanding(
  landed: LandedTransaction,
  { raw, account, native, nativeDecimals }: LandingOrder,
): Landing {
  if (landed.raw !== raw) throw new Fault('unavailable', 'The Solana node answered with another transaction')
  const { staticAddresses } = decodeMessage(splitTransaction(Buffer.from(raw, 'base64')).message)
  const lamportsDelta = (index: number) => {
    const [before, after] = [landed.lamportsBefore[index], landed.lamportsAfter[index]]
    if (before === undefined || after === undefined)
      throw new Fault('unavailable', 'The Solana node answered without the balances of the transaction')
    return after - before
  }
  const deltas = new Map<string, BalanceDelta>()
  const add = (token: string, decimals: number, amountUnits: bigint) =>
    deltas.set(token, { token, decimals, amountUnits: (deltas.get(token)?.amountUnits ?? 0n) + amountUnits })
  add(native, nativeDecimals, lamportsDelta(staticAddresses.indexOf(account)))
  for (const { owner, mint, decimals, amountUnits } of landed.tokensAfter)
    if (owner === account) add(mint, decimals, amountUnits)
  for (const { owner, mint, decimals, amountUnits } of landed.tokensBefore)
    if (owner === account) add(mint, decimals, -amountUnits)
  const sponsorLamports = -lamportsDelta(0)
  return {
    slot: landed.slot,
    failure: landed.failure,
    sponsorLamports: sponsorLamports > 0n ? sponsorLamports : 0n,
    deltas: [...deltas.values()].filter(({ amountUnits }) => amountUnits !== 0n),
    lamportDeltas: new Map(staticAddresses.map((address, index) => [address, lamportsDelta(index)])),
  }
}
