import { monotonicMs } from '#kernel/clock.ts'
import { toActScope } from '#kernel/contract/caller.ts'
import { implement, taskOf } from '#kernel/contract/operation.ts'
import { createAccessCheck } from './account-checks.ts'
import { createAccountSync } from './account-sync.ts'
import { createAccountViews, createUserSeq } from './account-views.ts'
import { createAdmissionReads } from './admission-reads.ts'
import { createCancel } from './cancel.ts'
import { contract } from './contract.ts'
import type { PredmktDeps } from './deps.ts'
import { acknowledge } from './disclaimer.ts'
import { createExitKind } from './exit-task.ts'
import { createBookReader } from './exits.ts'
import { createForgottenOrderSearch } from './find-forgotten-orders.ts'
import { fundSteps } from './fund.ts'
import { admitFund } from './fund-admission.ts'
import { createMarketViews } from './market-views.ts'
import { createMeta } from './meta.ts'
import { createOpenOrders } from './open-orders.ts'
import { admitOrder } from './order-admission.ts'
import { orderSteps } from './order-steps.ts'
import { createActivity, createPositions } from './positions.ts'
import { createReadBudget } from './read-budget.ts'
import { createRedeem } from './redeem.ts'
import { deletions } from './retention.ts'
import { createSetup } from './setup.ts'
import { createSetupStatus } from './setup-status.ts'
import { createVenueHoldings } from './venue-holdings.ts'
import { createVenueViews } from './venue-views.ts'
import { createWithdraw } from './withdraw.ts'

/** The section of prediction markets: an account at a venue, orders, and money in and out. */

const orderRetry = { attemptsMax: 1_000, firstMs: 300, maxMs: 10_000 }

export function createPredmkt(deps: PredmktDeps) {
  const access = createAccessCheck(deps)
  const budget = createReadBudget(monotonicMs)
  const views = createVenueViews(deps.venue, monotonicMs, budget)
  const orderDeps = { ...deps, access, reads: createAdmissionReads({ venue: deps.venue, views }) }
  const status = createSetupStatus(orderDeps)
  const accountViews = createAccountViews({ userSeq: createUserSeq(deps.db), venue: deps.venue, budget })
  // Tasks read the status anew, and people one that is some seconds old.
  const shownStatus = createSetupStatus({ ...orderDeps, venue: { ...deps.venue, keys: accountViews.keys } })
  const readDeps = { ...deps, views }
  const markets = createMarketViews(readDeps)
  const meta = createMeta(readDeps)
  const openOrders = createOpenOrders({ ...deps, accountViews })
  const positions = createPositions(readDeps)
  const activity = createActivity(deps, positions)
  const operations = implement(contract, {
    markets: (input, { userId }) => markets.markets(input, userId),
    event: (input, { userId }) => markets.event(input, userId),
    book: (input, { userId }) => markets.book(input, userId),
    prices: (input, { userId }) => markets.prices(input, userId),
    quote: (input, { userId }) => markets.quote(input, userId),
    meta: (_input, { userId }) => meta(userId),
    acknowledgeDisclaimer: (_input, { userId }, request) => acknowledge(deps, userId, toActScope(request)),
    setupStatus: (_input, { userId }) => accountViews.status(userId, () => shownStatus(userId)),
    setup: createSetup({ ...deps, status }, 'predmkt_setup'),
    setupV2: createSetup({ ...deps, status }, 'predmkt_setup_v2'),
    fund: taskOf({ admit: admitFund(deps), steps: fundSteps(deps), looksUp: true }),
    withdraw: createWithdraw(deps),
    redeem: createRedeem(readDeps),
    order: taskOf({
      admit: admitOrder(orderDeps),
      steps: orderSteps(orderDeps),
      retry: orderRetry,
      looksUp: true,
    }),
    cancel: createCancel(deps),
    openOrders: (_input, { userId }) => openOrders(userId),
    positions: (_input, { userId }) => positions(userId),
    activity: ({ limit = 200 }, { userId }) => activity(userId, limit),
  })
  const exitTasks = createExitKind(orderDeps)
  const sync = createAccountSync({ ...deps, exitTasks, books: createBookReader(deps) })
  return {
    operations,
    kinds: [exitTasks],
    starters: [sync.start],
    deletions,
    holdings: createVenueHoldings(deps, positions),
    findForgotten: createForgottenOrderSearch(deps),
    facts: factsOf(deps),
  }
}

/** What the capabilities say of the section. */
const factsOf = ({ venue, limits }: Pick<PredmktDeps, 'venue' | 'limits'>) => ({
  prediction_markets: {
    venue: venue.name,
    setup_offered: venue.setup !== undefined,
    protocols: venue.protocols,
    order_types: ['GTC', 'GTD', 'FOK', 'FAK'],
    exits: ['take_profit', 'stop_loss'],
    min_fund_usd: limits.minFundUsd,
  },
})
