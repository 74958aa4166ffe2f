import type { Ledger } from '#durable/ledger.ts'
import type { EvmBatches } from '#features/chains/batch.ts'
import type { VenueActs } from '#features/venue/act.ts'
import { admitCancel, cancelling, type Section } from '#features/venue/cancel.ts'
import type { Pricing } from '#features/venue/exits.ts'
import { gathering } from '#features/venue/gather.ts'
import { type PlaceNeeds, placing, type Refusals } from '#features/venue/place.ts'
import { freshMs } from '#features/venue/views.ts'
import type { Sizing } from '#features/venue/wish.ts'
import type { Clock } from '#kernel/clock.ts'
import { fulfil, type Operation } from '#kernel/operation.ts'
import type { EvmCall, Policy } from '#kernel/signer.ts'
import type { Queryable } from '#store/query.ts'
import type { Evm } from '#upstreams/evm/evm.ts'
import type { AccountViews } from '#upstreams/hyperliquid/account-views.ts'
import type { Hyperliquid } from '#upstreams/hyperliquid/hyperliquid.ts'
import { admitClose } from './close.ts'
import { contract } from './contract.ts'
import { admitFund, funding } from './fund.ts'
import { recordingLeverage } from './leverage-setting.ts'
import type { PerpLimits, Way } from './limits.ts'
import { mending } from './mend.ts'
import { admitOpen } from './open.ts'
import { ordersOf } from './orders-view.ts'
import { positionOperations } from './position-operations.ts'
import { type Agents, admitSetup, settingUp, setupRetry } from './setup.ts'
import { setupStatus } from './setup-status.ts'
import { marketView } from './views.ts'
import { admitWithdraw, withdrawing } from './withdraw.ts'

export type PerpNeeds = {
  on: Queryable
  venue: Hyperliquid
  views: AccountViews
  chainId: string
  orderHeard: PlaceNeeds['orderHeard']
  acts: VenueActs
  agents: Agents
  pricing: Pricing & Sizing
  refusals: Refusals
  policy: Policy
  ledger: Pick<Ledger, 'balance'>
  batches: EvmBatches
  /** The chain that the venue's bridge stands on. */
  chain: Evm
  transferCall: (token: string, to: string, amountUnits: bigint) => EvmCall
  way: Way
  evmAddressOf: (userId: string) => Promise<string>
  changed: (userId: string, chainId: string) => void
  clock: Clock
  limits: PerpLimits
}

export function perp(needs: PerpNeeds): Operation[] {
  const { on, venue, views, chainId, agents, policy, evmAddressOf, limits, clock } = needs
  const agentOf = async (userId: string) => (await agents.of(userId)).current
  const trade = { ...needs, agentOf }
  // What brings money home asks before what would spend it, and what was begun before what is only wished for.
  const exit = { ...trade, venue: venue.at('exit') }
  const work = { ...needs, venue: venue.at('work') }
  const status = setupStatus({ on, views, agents, evmAddressOf, clock, limits })
  const setUp = { ...work, status, released: policy.release }
  const { mend, steps: mendSteps } = mending(work)
  const agentLost: PlaceNeeds['agentLost'] = (task, agent) => agents.retired(task.userId, agent)
  const gather = gathering({ ...work, to: 'perp' })
  const place = { ...work, gathering: gather, agentLost, mend }
  const cancelled: Section = {
    kind: 'perp',
    operation: 'perp_cancel',
    marketOf: async ({ symbol }) => (await venue.perps()).markets.find((each) => each.symbol === symbol),
  }
  const placed = placing(place)
  const steps = { ...placed, leverage: recordingLeverage(placed.leverage), ...mendSteps }
  const released = policy.release

  return fulfil(contract, {
    async markets({ search_text }) {
      const { markets, at } = await venue.perps(freshMs)
      const part = search_text?.toLowerCase() ?? ''
      const rows = markets
        .map((market) => marketView(market, chainId, limits))
        .filter(({ symbol, name }) => `${symbol} ${name}`.toLowerCase().includes(part))
      return { markets: rows, total: rows.length, as_of: new Date(at).toISOString() }
    },

    setupStatus: async (_input, { userId }) => status(userId),
    setup: {
      admit: (input, caller) => admitSetup(setUp, input, caller),
      steps: settingUp(setUp),
      released,
      retry: setupRetry,
    },

    orders: async (_input, { userId }) => ordersOf({ on, venue, views }, userId, await evmAddressOf(userId)),

    open: { admit: (input, caller) => admitOpen(trade, input, caller), steps, released },
    close: { admit: (input, caller) => admitClose(exit, input, caller), steps, released },
    cancel: {
      admit: (input, caller) => admitCancel(exit, cancelled, input, caller),
      steps: cancelling({ ...exit, agentLost: (task, agent) => agents.retired(task.userId, agent) }),
      released,
    },
    ...positionOperations({ ...exit, agentLost }),
    fund: {
      admit: (input, caller) => admitFund(needs, input, caller),
      steps: funding(work),
      released: async (tx, taskId) => {
        await released(tx, taskId)
        await needs.batches.release(tx, taskId)
      },
    },
    withdraw: {
      admit: (input, caller) => admitWithdraw(exit, input, caller),
      steps: withdrawing({ ...exit, gathering: gather }),
      released,
    },
  })
}
