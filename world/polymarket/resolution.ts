import { isPicked } from '#world/venue-core/realism-settings.ts'
import { RequestError } from '#world/venue-core/request-error.ts'
import { addressOf } from './chain/accounts.ts'
import { autoRedeemCall, reportCall } from './chain/calls.ts'
import type { Address, Sender } from './chain/chain-terms.ts'
import type { Engine } from './machine.ts'
import { type Market, markets } from './markets.ts'
import { positionsOf } from './positions.ts'
import type { RealismControl } from './realism.ts'
import { stateOf } from './venue.ts'

export type Outcome = 'yes' | 'no' | 'void'

const payouts: Record<Outcome, number> = { yes: 10_000, no: 0, void: 5_000 }

export type Resolver = {
  /** `onChain` is false where the API knows before the chain does. */
  resolve: (market: Market, outcome: Outcome, options: { onChain: boolean }) => Promise<void>
  report: (market: Market) => Promise<void>
  /** Redeems by itself for some wallets, late. */
  autoRedeem: () => Promise<void>
}

const outcomeOf = (payout: number): Outcome => (payout === 5_000 ? 'void' : payout > 5_000 ? 'yes' : 'no')

export const createResolver = (
  engine: Engine,
  realism: RealismControl,
  sender: Sender | undefined,
): Resolver => {
  const { venue } = engine
  const tried = new Set<string>()

  const report: Resolver['report'] = async (market) => {
    const { payout, isReported } = stateOf(venue, market.conditionId)
    if (payout === null) throw new RequestError('This market is not resolved')
    if (isReported) return
    if (sender) await sender.send('resolver', reportCall(market.chain, outcomeOf(payout)))
    engine.submit({ kind: 'reported', conditionId: market.conditionId })
  }

  const redeem = async (wallet: string, market: Market): Promise<void> => {
    const call = autoRedeemCall(wallet as Address, market.chain)
    // A wallet that has not approved the operator is left alone.
    if (!sender || (await sender.simulate(addressOf('autoRedeemer'), call)) !== undefined) return
    await sender.send('autoRedeemer', call)
  }

  return {
    report,
    resolve: async (market, outcome, { onChain }) => {
      if (outcome === 'void' && market.chain.isNegRisk && market.chain.protocol === 'v1')
        throw new RequestError('A market of this event cannot be void')
      engine.submit({ kind: 'resolve', conditionId: market.conditionId, payout: payouts[outcome] })
      if (onChain) await report(market)
    },
    autoRedeem: async () => {
      const { rate, delayMs } = realism.current().autoRedeem
      if (rate === 0 || !sender) return
      for (const market of markets) {
        const { isReported, resolvedMs } = stateOf(venue, market.conditionId)
        if (!isReported || engine.nowMs() < resolvedMs + delayMs) continue
        const { activity } = venue.state
        const rows = activity.filter(({ conditionId }) => conditionId === market.conditionId)
        for (const wallet of new Set(rows.map((row) => row.wallet))) {
          const key = `${market.conditionId} ${wallet}`
          if (tried.has(key) || !isPicked(realism.current().seed, key, rate)) continue
          tried.add(key)
          const held = positionsOf(venue, wallet, engine.nowMs())
          if (held.some((each) => each.market === market && each.size > 0)) await redeem(wallet, market)
        }
      }
    },
  }
}
