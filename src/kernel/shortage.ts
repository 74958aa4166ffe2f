import { Fault } from './fault.ts'
import { fromUnits } from './money.ts'

type Shortage = {
  symbol: string
  decimals: number
  /** Address of the token, where it has one. */
  token?: string
  requiredUnits: bigint
  availableUnits: bigint
}

/** Money in an error is decimal text beside its symbol and decimals, and the sentence holds the figures too. */
export function insufficientBalance({ symbol, decimals, token, ...units }: Shortage): Fault {
  const required = fromUnits(units.requiredUnits, decimals)
  const available = fromUnits(units.availableUnits, decimals)
  return new Fault('insufficient_balance', `${required} ${symbol} are needed, and ${available} are free`, {
    extras: { symbol, token: token ?? symbol, decimals, required, available },
  })
}
