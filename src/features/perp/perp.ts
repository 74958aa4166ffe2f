import type { Ledger } from '#durable/ledger/ledger.ts'
import type { Transact } from '#durable/transactions.ts'
import type { EvmBatches } from '#engines/evm-batch/batch.ts'
import type { VenueTrading } from '#engines/venue/orders/venue-trading-deps.ts'
import { currentMarkets } from '#engines/venue/records/markets.ts'
import { pricesMaxAgeMs } from '#engines/venue/records/order-view.ts'
import { implement, taskOf } from '#kernel/contract/operation.ts'
import type { Log } from '#kernel/log.ts'
import type { EvmCall } from '#kernel/task/signer.ts'
import type { Evm } from '#upstreams/evm/evm.ts'
import { contract } from './contract.ts'
import { fundSteps } from './fund.ts'
import { admitFund, type FundDeps } from './fund-admission.ts'
import type { FundingRoute } from './funding-route.ts'
import { createKeyRenewal, type KeyRenewalDeps, renewalSchedule } from './key-renewal.ts'
import { type PerpLimits, perpFacts } from './limits.ts'
import { createOrderOperations } from './order-operations.ts'
import { admitSetup, setupRetry, setupSteps } from './setup.ts'
import { createSetupStatus } from './setup-status.ts'
import { marketView } from './views.ts'
import { admitWithdraw, withdrawSteps } from './withdraw.ts'

export type PerpDeps = VenueTrading & {
  ledger: Pick<Ledger, 'balance'>
  batches: EvmBatches
  /** The chain of the venue's bridge. */
  chain: Evm
  transferCall: (token: string, to: string, amountUnits: bigint) => EvmCall
  route: FundingRoute
  changed: (userId: string, chainId: string) => void
  limits: PerpLimits
  transact: Transact
  enqueue: KeyRenewalDeps['enqueue']
  swaps: FundDeps['swaps']
  reserve: FundDeps['reserve']
  log: Log
}
export function createPerp(deps: PerpDeps) {
  const { db, venue, views, chainId, tradingKeys, viewedAccountOf, limits, clock } = deps
  // Exits take rate budget before orders that spend, and accepted tasks take it before new requests.
  const exit = { ...deps, venue: venue.withUrgency('exit') }
  const work = { ...deps, venue: venue.withUrgency('work') }
  const status = createSetupStatus({ db, views, tradingKeys, viewedAccountOf, clock, limits })
  const setUp = { ...work, status }

  const operations = implement(contract, {
    async markets({ search_text }) {
      const list = await venue.perps(pricesMaxAgeMs)
      const part = search_text?.toLowerCase() ?? ''
      const rows = currentMarkets(list)
        .map((market) => marketView(market, chainId, limits))
        .filter(({ symbol, name }) => `${symbol} ${name}`.toLowerCase().includes(part))
      return { markets: rows, total: rows.length, as_of: new Date(list.at).toISOString() }
    },

    setupStatus: async (_input, { userId }) => status(userId),
    setup: taskOf({ admit: admitSetup(setUp, { exit: false }), steps: setupSteps(setUp), retry: setupRetry }),

    ...createOrderOperations({ trade: deps, exit, work }),
    fund: taskOf({ admit: admitFund(deps), steps: fundSteps(work), looksUp: true }),
    withdraw: taskOf({ admit: admitWithdraw(exit), steps: withdrawSteps(exit) }),
  })
  const renewal = createKeyRenewal(setUp)
  return {
    operations,
    kinds: renewal.kinds,
    schedules: [renewalSchedule],
    facts: perpFacts(limits),
    renewal,
  }
}
