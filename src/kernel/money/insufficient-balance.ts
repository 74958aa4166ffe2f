import { Fault } from '#kernel/contract/fault.ts'
import { fromUnits } from './money.ts'

type Amounts = { requiredUnits: bigint; availableUnits: bigint } | { required: string; available: string }

/** `decimals` has enough places for every amount. `chainId` is set if a node of that chain was read. */
type TokenFacts = { symbol: string; decimals: number; address?: string; chainId?: string }
type Shortage = Amounts & {
  what?: string
  /** A clause of the message that says why the available balance is that low; `reason` is its code. */
  note?: string
  reason?: string
}

/**
 * Returns the fault of a balance that is too low. Its amounts are decimal text with symbol and decimals, and its
 * message contains them too.
 */
export function insufficientBalance(token: TokenFacts, shortage: Shortage): Fault {
  const { symbol, decimals, address = symbol, chainId } = token
  const { what = 'The request', note, reason } = shortage
  const [required, available] =
    'required' in shortage
      ? [shortage.required, shortage.available]
      : [fromUnits(shortage.requiredUnits, decimals), fromUnits(shortage.availableUnits, decimals)]
  const sentence = `${what} needs ${required} ${symbol}, but only ${available} ${symbol} is available`
  return new Fault('insufficient_balance', note === undefined ? sentence : `${sentence}: ${note}`, {
    extras: {
      symbol,
      token: address,
      ...(chainId !== undefined && { chain_id: chainId }),
      decimals,
      required,
      available,
      ...(reason !== undefined && { reason }),
    },
  })
}
