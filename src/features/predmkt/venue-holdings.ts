import { sameAddress, type Token } from '#kernel/money/chains.ts'
import { usdcDecimals } from '#kernel/money/money.ts'
import { cashSymbol, moneyOf } from './balances.ts'
import type { PredmktDeps } from './deps.ts'
import type { PositionsReader, PositionView } from './positions.ts'
import { accountOf, walletOfRow } from './store/account-store.ts'

/** What lies in the wallet at the venue: dollars by the chain, and settled shares with what they are worth. */

export const createVenueHoldings = (deps: PredmktDeps, positions: PositionsReader) => ({
  name: deps.venue.name,
  displayName: 'Polymarket',
  chain: deps.chain.row,
  async read(userId: string) {
    const { db, venue, chain, clock } = deps
    const account = await accountOf(db, { userId, venue: venue.name })
    if (!account) return undefined
    const { wallet } = walletOfRow(account)
    const tokens = dollarsOf(deps)
    const [{ head, tokens: units }, held] = await Promise.all([
      chain.balances(
        wallet,
        tokens.map(({ token }) => token.address),
      ),
      positions(userId),
    ])
    const dollars = tokens.map(({ token, backing }, index) => {
      const amountUnits = units[index] ?? 0n
      return {
        kind: 'token' as const,
        token,
        amountUnits,
        verified: true,
        ...(backing && { backing: { asset: backing, amountUnits } }),
      }
    })
    return {
      block: head.number,
      at: clock.now(),
      held: dollars.filter(({ amountUnits }) => amountUnits > 0n),
      shares: held.positions.filter(({ size }) => size !== '0').map((each) => withToken(deps, wallet, each)),
    }
  },
})

/** The cash is worth what backs it one to one, because no source lists a price of it. */
function dollarsOf(deps: PredmktDeps): { token: Token; backing?: Token }[] {
  const { cashToken, wrappable } = moneyOf(deps)
  const { row } = deps.chain
  const known = (symbol: string, address: string): Token =>
    row.tokens.find((token) => sameAddress(row, token.address, address)) ?? {
      symbol,
      name: symbol,
      decimals: usdcDecimals,
      address,
    }
  return [
    ...wrappable.map(({ symbol, token }) => ({ token: known(symbol, token) })),
    { token: known(cashSymbol, cashToken), backing: known('USDC', row.usdc) },
  ]
}

const withToken = (deps: PredmktDeps, wallet: string, position: PositionView) => ({
  ...position,
  tokenAddress: moneyOf(deps).sharesCall(wallet, position, position.outcome_id).to,
})
