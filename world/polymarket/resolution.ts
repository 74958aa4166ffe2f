import { isPicked } from '#world/venue-core/realism-settings.ts'
import { RequestError } from '#world/venue-core/request-error.ts'
import { addressOf } from './chain/accounts.ts'
import { autoRedeemCall, reportCall } from './chain/calls.ts'
import type { Address, Reads, Sender } from './chain/chain-terms.ts'
import type { Engine } from './machine.ts'
import { type Market, markets, marketsOf } from './markets.ts'
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
  chain: { sender: Sender; reads: Reads } | undefined,
): Resolver => {
  const { venue } = engine
  const tried = new Set<string>()

  const report: Resolver['report'] = async (market) => {
    const { payout, isReported } = stateOf(venue, market.conditionId)
    if (payout === null) throw new RequestError('This market is not resolved')
    if (isReported) return
    // A report that was mined before the process ended is not sent again.
    if (chain && (await chain.reads.resolution(market.chain)).denominator === 0n)
      await chain.sender.send('resolver', reportCall(market.chain, outcomeOf(payout)))
    engine.submit({ kind: 'reported', conditionId: market.conditionId })
  }

  const redeem = async (wallet: string, market: Market): Promise<void> => {
    const call = autoRedeemCall(wallet as Address, market.chain)
    const sender = chain?.sender
    // A wallet that has not approved the operator is left alone.
    if (!sender || (await sender.simulate(addressOf('autoRedeemer'), call)) !== undefined) return
    await sender.send('autoRedeemer', call)
  }

  return {
    report,
    resolve: async (market, outcome, { onChain }) => {
      if (outcome === 'void' && market.chain.isNegRisk)
        throw new RequestError('A market of this event cannot be void')
      const call = reportCall(market.chain, outcome)
      const reason = await chain?.sender.simulate(addressOf('resolver'), call)
      if (reason !== undefined) throw new RequestError(`The chain refuses this result: ${reason}`)
      const isWon = ({ conditionId }: Market) => stateOf(venue, conditionId).payout === payouts.yes
      if (outcome === 'yes' && market.chain.isNegRisk && marketsOf(market.event).some(isWon))
        throw new RequestError('Another market of this event has won')
      engine.submit({ kind: 'resolve', conditionId: market.conditionId, payout: payouts[outcome] })
      if (onChain) await report(market)
    },
    autoRedeem: async () => {
      const { rate, delayMs } = realism.current().autoRedeem
      if (rate === 0 || !chain) return
      for (const market of markets) {
        const { isReported, resolvedMs } = stateOf(venue, market.conditionId)
        if (!isReported || engine.nowMs() < resolvedMs + delayMs) continue
        const { activity, opening } = venue.state
        const rows = activity.filter(({ conditionId }) => conditionId === market.conditionId)
        for (const wallet of new Set([...opening.keys(), ...rows.map((row) => row.wallet)])) {
          const key = `${market.conditionId} ${wallet}`
          if (tried.has(key) || !isPicked(realism.current().seed, key, rate)) continue
          tried.add(key)
          const held = positionsOf(venue, wallet, engine.nowMs())
          if (held.some((each) => each.market === market && each.size > 0))
            await redeem(wallet, market).catch((error: unknown) => {
              tried.delete(key)
              throw error
            })
        }
      }
    },
  }
}
