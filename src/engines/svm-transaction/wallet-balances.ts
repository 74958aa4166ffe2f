import type { Solana, StateAt } from '#upstreams/solana/solana.ts'

/** Reads how much a wallet holds of the tokens that a transaction spends. */

export type HeldUnits = { token: string; units: string }
type Wallet = { account: string; tokens: readonly string[] }

export function heldUnits(
  chain: Pick<Solana, 'row' | 'balance'>,
  { account, tokens }: Wallet,
  at?: StateAt,
): Promise<HeldUnits[]> {
  return Promise.all(
    tokens.map(async (token) => {
      const units = await chain.balance(account, token, token === chain.row.native.address, at)
      return { token, units: String(units) }
    }),
  )
}
