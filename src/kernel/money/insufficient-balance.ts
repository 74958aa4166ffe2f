import { Fault } from '#kernel/contract/fault.ts'
import { fromUnits } from './money.ts'

type Amounts = { requiredUnits: bigint; availableUnits: bigint } | { required: string; available: string }

/** `decimals`: enough places for every amount. `address`: for tokens that have one; `chainId` where its node was read. */
type TokenFacts = { symbol: string; decimals: number; address?: string; chainId?: string }
type Shortage = Amounts & {
  /** Subject of the message. */
  what?: string
  /** Why the available balance is that low: a clause of the message, and its code. */
  note?: string
  reason?: string
}

/** Amounts in an error are decimal text with symbol and decimals; the message contains them too. */
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
