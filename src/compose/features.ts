import { toTaskFullView } from '#durable/task/task-view.ts'
import { readWallets } from '#engines/custody/wallet-store.ts'
import { createChains } from '#features/chains/chains.ts'
import { createTasks } from '#features/tasks/tasks.ts'
import { createUser } from '#features/user/user.ts'
import type { Operation } from '#kernel/contract/operation.ts'
import { createPrices } from '#upstreams/prices/prices.ts'
import { type AuthOverrides, openAuth } from './auth.ts'
import { type ChatOverrides, openChat } from './chat.ts'
import { openDiscovery } from './discovery-and-health.ts'
import { openImages } from './files-and-images.ts'
import { openMarkets } from './markets.ts'
import { oauthSection } from './oauth.ts'
import { openPolicy } from './policy-and-approvals.ts'
import { openPortfolio } from './portfolio.ts'
import { openPredmkt } from './predmkt.ts'
import { openRecharge } from './recharge.ts'
import { openSchedules } from './schedules.ts'
import { type Joined, joinSections, type Section } from './section.ts'
import type { Parts } from './section-parts.ts'
import { openStrategies } from './strategies.ts'
import { openSubscriptions } from './subscriptions.ts'
import { openSwap } from './swap.ts'
import { openSecurity } from './token-security.ts'
import { type OrderOverrides, openOrders, openSwapHooks } from './trigger-orders.ts'
import { openVenueFeatures, type VenueFeatureOverrides } from './venue-features.ts'
import { openHoldings, openWallets } from './wallets.ts'
import { openWebhooks, type WebhookOverrides } from './webhooks.ts'

export type FeatureOverrides = VenueFeatureOverrides &
  OrderOverrides &
  WebhookOverrides &
  AuthOverrides &
  ChatOverrides & {
    /** Operations of a test, on the same parts as those of the product. */
    addOperations?: (parts: Pick<Parts, 'core' | 'chains' | 'custody'>) => Operation[]
  }

/** The prices for triggers may be as old as the interval of the watch that compares them. */
const orderPricesMs = 1_000

/** Opens the parts that several sections read: prices, and the holdings of users. */
function openShared(deps: Parts & Pick<Parameters<typeof openHoldings>[0], 'venueHoldings'>) {
  const priceDeps = { url: deps.urls.prices ?? '', net: deps.net, clock: deps.core.clock }
  const prices = createPrices(priceDeps)
  const orderPrices = createPrices({ ...priceDeps, freshMs: orderPricesMs })
  return { ...deps, prices, orderPrices, ...openHoldings({ ...deps, prices }) }
}

/** Every section, in the order in which clients list the operations. */
export function openFeatures(deps: Parts, overrides: FeatureOverrides = {}) {
  const { core, chains, custody, probe } = deps
  const { db, clock, taskEngine } = core
  const shared = openShared({ ...deps, venueHoldings: () => predmkt?.holdings })
  const wallets = openWallets(shared)
  const access = openAuth({ ...deps, onSignup: wallets.onSignup }, overrides)
  const { auth, credits } = access
  const discovery = openDiscovery(deps, () => sections)
  const security = openSecurity(deps)
  const swaps = openSwap({ ...shared, verdicts: security.verdicts, hooks: openSwapHooks(shared) })
  const trading = openVenueFeatures({ ...shared, swaps }, overrides)
  const predmkt = openPredmkt({ ...shared, swaps })
  const orders = openOrders({ ...shared, swaps: swaps.execution }, overrides)
  const webhooks = openWebhooks({ ...deps, auth }, overrides)
  const images = openImages({ ...deps, credits })
  const subscriptions = openSubscriptions(deps)
  const markets = openMarkets(deps)
  const all = (): Joined => joined
  const operations = () => joined.operations
  const strategies = openStrategies({ ...deps, markets, files: images.files, operations })
  const taskDeps = { db, clock, tasks: taskEngine.tasks, view: toTaskFullView, sections: all }
  const chatDeps = { ...deps, credits, files: images.files, operations }
  const sections: readonly Section[] = [
    discovery,
    { part: 'chains', ...createChains({ chainRows: chains.table, status: probe.status }) },
    auth,
    security,
    wallets,
    openPortfolio({
      ...shared,
      hasVault: shared.earn !== undefined,
      hasPredictions: predmkt !== undefined,
      operations,
    }),
    shared.earn ?? {},
    trading?.perp ?? {},
    trading?.spot ?? {},
    predmkt ?? {},
    markets?.section ?? {},
    strategies?.section ?? {},
    swaps,
    orders,
    { operations: createTasks({ ...taskDeps, publishOrders: orders.publish }) },
    credits,
    openRecharge(shared) ?? {},
    subscriptions,
    {
      operations: createUser({
        db,
        walletsOf: readWallets,
        credits,
        planOf: subscriptions.planOf,
        policySummary: custody.policy.summary,
      }),
    },
    webhooks,
    images,
    ...openPolicy(deps, access),
    openChat(chatDeps, overrides),
    openSchedules({ ...chatDeps, auth, strategies }),
    oauthSection(access.oauth),
    { operations: overrides.addOperations?.(deps) ?? [] },
  ]
  const joined = joinSections(sections)
  return {
    ...joined,
    ...access,
    ...trading,
    discovery,
    security,
    wallets,
    webhooks,
    images,
    subscriptions,
    strategies,
    earn: shared.earn,
    holdings: shared.holdings,
    predictions: predmkt?.findForgotten,
  }
}
