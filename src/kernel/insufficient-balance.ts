import { Fault } from './fault.ts'
import { fromUnits } from './money.ts'

type Amounts = { requiredUnits: bigint; availableUnits: bigint } | { required: string; available: string }

/** `decimals`: places into which every figure fits. `address`: where the token has one. */
type TokenFacts = { symbol: string; decimals: number; address?: string }
type Shortage = Amounts & {
  /** Subject of the sentence. */
  what?: string
  /** Why the balance is what it is: a sentence, and its code. */
  note?: string
  reason?: string
}

/** Money in an error is decimal text beside its symbol and decimals, and the sentence holds the figures too. */
export function insufficientBalance(token: TokenFacts, shortage: Shortage): Fault {
  const { symbol, decimals, address = symbol } = token
  const { what = 'The request', note, reason } = shortage
  const [required, available] =
    'required' in shortage
      ? [shortage.required, shortage.available]
      : [fromUnits(shortage.requiredUnits, decimals), fromUnits(shortage.availableUnits, decimals)]
  const sentence = `${what} takes ${required} ${symbol}, and ${available} ${symbol} are free`
  return new Fault('insufficient_balance', note === undefined ? sentence : `${sentence}: ${note}`, {
    extras: {
      symbol,
      token: address,
      decimals,
      required,
      available,
      ...(reason !== undefined && { reason }),
    },
  })
}
