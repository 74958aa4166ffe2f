/** The test files, the sizes of a run, and how its files are grouped into processes. */
import { existsSync, readdirSync } from 'node:fs'
import { matchesGlob, sep } from 'node:path'
import { root } from './environment.ts'

/** `npm test`, or `npm run test:all`. */
export type Size = 'test' | 'all'

/**
 * Processor seconds of a run, with its database, on the two processors of a CI machine. The same run took from 602 to
 * 1,960 of them on machines of one kind, so that only three times the budget fails. Who adds to `npm test` moves something else
 * to `laterFiles`: `npm test -- --verbose` prints what each file takes.
 */
export const budgetCpuSeconds: Record<Size, number> = { test: 950, all: 4_000 }

type Later = { reason: string; files: readonly string[] }

/** What `npm test` leaves to `npm run test:all`. */
export const laterFiles: readonly Later[] = [
  {
    reason:
      'storms, races and kills of many users and instances: npm test kills at one point of each suite instead',
    files: [
      'test/crash/cancel-race.test.ts',
      'test/crash/chat-files.test.ts',
      'test/crash/chat-budget-points.test.ts',
      'test/crash/conservation.test.ts',
      'test/crash/earn-kills.test.ts',
      'test/crash/failover-deposits.test.ts',
      'test/crash/farming-days.test.ts',
      'test/crash/order-storm.test.ts',
      'test/crash/predmkt-points-fills.test.ts',
      'test/crash/predmkt-points-stops.test.ts',
      'test/crash/predmkt-storm.test.ts',
      'test/crash/paper-run-points.test.ts',
      'test/crash/solver-kills.test.ts',
      'test/crash/spot-stops.test.ts',
      'test/crash/stopped-instance.test.ts',
      'test/crash/strategy-slots.test.ts',
      'test/crash/subscription-points.test.ts',
      'test/crash/svm-kills.test.ts',
      'test/crash/swap-storm.test.ts',
      'test/crash/venue-chaos.test.ts',
      'test/crash/venue-points-cancels.test.ts',
      'test/crash/venue-points-holding.test.ts',
      'test/crash/venue-points-spot.test.ts',
      'test/crash/venue-points-withdraw.test.ts',
      'test/venue/simulated-farming-days.test.ts',
    ],
  },
  {
    reason: 'operator commands beyond those of journeys/admin, each of which starts gateways of its own',
    files: [
      'test/journeys/admin-accounts.test.ts',
      'test/journeys/admin-agents.test.ts',
      'test/journeys/admin-backup.test.ts',
      'test/journeys/admin-keys.test.ts',
      'test/journeys/admin-restore.test.ts',
      'test/journeys/admin-tasks.test.ts',
      'test/durable/operator-ends-by-kind.test.ts',
      'test/journeys/admin-tokens.test.ts',
      'test/journeys/restore-money.test.ts',
      'test/journeys/restore-predictions.test.ts',
      'test/journeys/restore-venue.test.ts',
    ],
  },
  {
    reason: 'a section whose first journey npm test has: further cases of it',
    files: [
      'test/journeys/app-attacks.test.ts',
      'test/journeys/schedule-doors.test.ts',
      'test/journeys/schedule-edits.test.ts',
      'test/journeys/strategy-terms.test.ts',
      'test/journeys/strategy-doors.test.ts',
      'test/journeys/strategy-farming.test.ts',
      'test/journeys/strategy-live.test.ts',
      'test/journeys/strategy-paper.test.ts',
      'test/journeys/perp-funding.test.ts',
      'test/journeys/concurrent-acts.test.ts',
      'test/journeys/chat-model.test.ts',
      'test/journeys/chat-reports.test.ts',
      'test/journeys/earn-external.test.ts',
      'test/journeys/earn-withdrawals.test.ts',
      'test/journeys/exit-codes.test.ts',
      'test/journeys/forgotten-executions.test.ts',
      'test/journeys/linked-agents.test.ts',
      'test/journeys/lost-upstream-replies.test.ts',
      'test/journeys/order-attacks.test.ts',
      'test/journeys/order-retries.test.ts',
      'test/journeys/order-shares.test.ts',
      'test/journeys/portfolio.test.ts',
      'test/journeys/predmkt-cases.test.ts',
      'test/journeys/predmkt-exit-ends.test.ts',
      'test/journeys/predmkt-exits.test.ts',
      'test/journeys/predmkt-foreign.test.ts',
      'test/journeys/predmkt-money-cases.test.ts',
      'test/journeys/predmkt-builder-fees.test.ts',
      'test/journeys/predmkt-orders.test.ts',
      'test/journeys/predmkt-redemptions.test.ts',
      'test/journeys/predmkt-restrictions.test.ts',
      'test/journeys/predmkt-wallet.test.ts',
      'test/journeys/recharge-strays.test.ts',
      'test/journeys/sponsor-budget.test.ts',
      'test/journeys/svm-deposits.test.ts',
      'test/journeys/svm-orders.test.ts',
      'test/journeys/subscription-periods.test.ts',
      'test/journeys/swap-bridge.test.ts',
      'test/journeys/swap-hooks.test.ts',
      'test/journeys/swap-lies.test.ts',
      'test/journeys/swap-live-services.test.ts',
      'test/journeys/swap-partial-payments.test.ts',
      'test/journeys/swap-payments.test.ts',
      'test/journeys/swap-providers.test.ts',
      'test/journeys/swap-quote-shares.test.ts',
      'test/journeys/swap-routers.test.ts',
      'test/journeys/swap-solana.test.ts',
    ],
  },
  {
    reason: 'rules of the code, which `npm run check` compares: CI runs it before',
    files: ['test/architecture.test.ts'],
  },
  {
    reason: 'starts PostgreSQL servers of its own, a primary and a standby for each test',
    files: ['test/durable/failover.test.ts'],
  },
  {
    reason: 'packs and installs the package, or starts the product again and again',
    files: [
      'test/journeys/package.test.ts',
      'test/journeys/sdk-browser.test.ts',
      'test/journeys/npm-start.test.ts',
      'test/upgrade/earlier-folders.test.ts',
    ],
  },
  {
    reason: 'deviations of the venue that a client waits for on the wall clock',
    files: [
      'test/venue/nonces.test.ts',
      'test/venue/reconcile.test.ts',
      'test/venue/perp-lifecycle.test.ts',
      'test/venue/unwind.test.ts',
      'test/venue/spot.test.ts',
      'test/venue/key-renewal.test.ts',
      'test/venue/odd-market-lists.test.ts',
      'test/venue/post-only-venue.test.ts',
      'test/venue/read-after-write.test.ts',
      'test/venue/read-lag.test.ts',
      'test/venue/realistic.test.ts',
      'test/venue/reconcile-under-load.test.ts',
      'test/venue/request-budget.test.ts',
      'test/venue/spot-exits.test.ts',
      'test/venue/spot-failures.test.ts',
      'test/venue/unified-account.test.ts',
      'test/venue/unknown-outcome.test.ts',
      'test/venue/unknown-outcome-weight.test.ts',
      'test/venue/weight-shares.test.ts',
      'test/venue/contradicting-records.test.ts',
      'test/venue/market-history.test.ts',
      'test/venue/candle-store.test.ts',
      'test/venue/paper-beside-live.test.ts',
      'test/venue/paper-strategies.test.ts',
      'test/venue/replayed-decisions.test.ts',
      'test/venue/position-exits.test.ts',
      'test/venue/venue-replies.test.ts',
      'test/venue/first-fills.test.ts',
      'test/venue/own-part.test.ts',
      'test/venue/ordered-exits.test.ts',
    ],
  },
  {
    reason: 'the local world against further foreign clients',
    files: [
      'test/conformance/mcp.test.ts',
      'world/conformance/world-solver.test.ts',
      'test/conformance/generated-clients.test.ts',
      'test/conformance/openapi-readers.test.ts',
      'world/conformance/prediction-ccxt.test.ts',
      'world/conformance/prediction-client.test.ts',
      'world/conformance/prediction-dial.test.ts',
      'world/conformance/prediction-money.test.ts',
      'world/conformance/prediction-relayer.test.ts',
      'world/conformance/prediction-rules.test.ts',
      'world/conformance/prediction-chain.test.ts',
      'world/conformance/prediction-storm.test.ts',
      'test/conformance/mcp-authorization.test.ts',
      'world/conformance/venue-account-modes.test.ts',
      'world/conformance/venue-bridge.test.ts',
      'world/conformance/venue-ccxt.test.ts',
      'world/conformance/venue-faults.test.ts',
      'world/conformance/venue-history.test.ts',
      'world/conformance/venue-hyperliquid.test.ts',
      'world/conformance/venue-margins.test.ts',
      'world/conformance/venue-node20.test.ts',
      'world/conformance/venue-openbroker.test.ts',
      'world/conformance/venue-realism.test.ts',
      'world/conformance/venue-streams.test.ts',
      'world/conformance/world-crash.test.ts',
      'world/conformance/world-evm-ethers.test.ts',
      'world/conformance/world-images.test.ts',
      'world/conformance/world-launched-tokens.test.ts',
      'world/conformance/world-model-anthropic.test.ts',
      'world/conformance/world-model.test.ts',
      'world/conformance/world-realism.test.ts',
      'world/conformance/world-solana-realism.test.ts',
      'world/conformance/world-solana-web3.test.ts',
      'world/conformance/world-solver-realism.test.ts',
      'world/conformance/world-solver-refunds.test.ts',
      'world/conformance/world-solver-solana.test.ts',
      'world/conformance/world-ports.test.ts',
      'world/conformance/world-stripe.test.ts',
    ],
  },
  {
    reason: 'proofs of cost and of fairness under load, and generated requests by the thousand',
    files: [
      'test/proof/mistakes.test.ts',
      'test/proof/numbers.test.ts',
      'test/proof/authorization-matrix.test.ts',
      'test/proof/web-writes.test.ts',
      'test/edges/fuzz.test.ts',
      'test/proof/cost.test.ts',
      'test/proof/web-cost.test.ts',
      'test/proof/agent/injections.test.ts',
      'test/proof/agent/injected-tools.test.ts',
      'test/proof/agent/injected-runs.test.ts',
      'test/proof/agent/run-budget.test.ts',
      'test/proof/agent/asked.test.ts',
      'test/proof/agent/wordings.test.ts',
      'test/proof/agent/honest-answers.test.ts',
      'test/edges/fairness.test.ts',
    ],
  },
  {
    reason: 'the command line and the SDK for each operation: npm test compares one door with HTTP',
    files: ['test/proof/cli-door.test.ts', 'test/proof/sdk-door.test.ts'],
  },
  {
    reason: 'the embedded database under other accounts and after crashes: each run of npm test starts one',
    files: ['test/store/embedded.test.ts', 'test/store/embedded-account.test.ts'],
  },
  {
    reason: 'nodes that lag, refuse or are refused, after the first cases of chains',
    files: [
      'test/chains/reorg.test.ts',
      'test/chains/abandoned-nonces.test.ts',
      'test/chains/gas-limits.test.ts',
      'test/chains/unreliable-node.test.ts',
      'test/chains/sponsor-load.test.ts',
    ],
  },
  {
    reason: 'further ways to sign in, and attacks on them',
    files: [
      'test/oauth/sign-in-limits.test.ts',
      'test/oauth/login.test.ts',
      'test/oauth/attacks.test.ts',
      'test/oauth/real-clients.test.ts',
      'test/oauth/facade-approvals.test.ts',
      'test/oauth/foreign-clients.test.ts',
    ],
  },
  {
    reason: 'further cases of the chat',
    files: [
      'test/market/charts.test.ts',
      'test/chat/model-faults.test.ts',
      'test/chat/agent-service.test.ts',
      'test/chat/cut-streams.test.ts',
      'test/chat/model-endpoints.test.ts',
      'test/chat/terminal.test.ts',
    ],
  },
  {
    reason: 'pages in a browser, which a fresh machine lacks: their texts stay in npm test',
    files: [
      'test/oauth/account-browser.test.ts',
      'test/oauth/approvals-browser.test.ts',
      'test/journeys/subscription-browser.test.ts',
      'test/oauth/browser.test.ts',
      'test/oauth/mcp-browser.test.ts',
      'test/oauth/oidc-client-browser.test.ts',
      'test/oauth/passkey-browser.test.ts',
    ],
  },
  {
    reason: 'foreign clients of the MCP door, some of which the test installs',
    files: [
      'test/mcp/foreign-clients.test.ts',
      'test/mcp/inspector.test.ts',
      'test/mcp/installed-clients.test.ts',
    ],
  },
  {
    reason: 'webhooks and images after the first cases of delivery, applications and keys',
    files: ['test/webhooks/instances.test.ts', 'test/images/charges.test.ts', 'test/images/files.test.ts'],
  },
]

/**
 * What `npm test` runs of the folders whose files are expensive. Only a check reads this list: a new file there needs a
 * size that somebody chose.
 */
export const sizedFolders = [
  'test/journeys/',
  'test/proof/',
  'test/crash/',
  'test/conformance/',
  'world/conformance/',
  'test/venue/',
]
export const defaultFiles: readonly string[] = [
  'test/journeys/admin.test.ts',
  'test/journeys/agent-documents.test.ts',
  'test/journeys/approvals.test.ts',
  'test/journeys/chat.test.ts',
  'test/journeys/discovery.test.ts',
  'test/journeys/earn.test.ts',
  'test/journeys/exactly-once.test.ts',
  'test/journeys/holdings.test.ts',
  'test/journeys/http.test.ts',
  'test/journeys/metrics.test.ts',
  'test/journeys/orders.test.ts',
  'test/journeys/predmkt.test.ts',
  'test/journeys/predmkt-quota.test.ts',
  'test/journeys/recharge.test.ts',
  'test/journeys/recipients.test.ts',
  'test/journeys/registration.test.ts',
  'test/journeys/schedule-days.test.ts',
  'test/journeys/schedules.test.ts',
  'test/journeys/sdk.test.ts',
  'test/journeys/security.test.ts',
  'test/journeys/start.test.ts',
  'test/journeys/strategies.test.ts',
  'test/journeys/stream.test.ts',
  'test/journeys/subscriptions.test.ts',
  'test/journeys/swap.test.ts',
  'test/journeys/tokens.test.ts',
  'test/journeys/transfers.test.ts',
  'test/journeys/wait.test.ts',
  'test/journeys/webhooks.test.ts',
  'test/proof/agent/answers.test.ts',
  'test/proof/agent/own-orders.test.ts',
  'test/proof/agent/plans.test.ts',
  'test/proof/agent/questions.test.ts',
  'test/proof/agent/recommendation-text.test.ts',
  'test/proof/agent/threads.test.ts',
  'test/proof/authorization.test.ts',
  'test/proof/doors.test.ts',
  'test/proof/errors.test.ts',
  'test/proof/network-urls.test.ts',
  'test/proof/secrets.test.ts',
  'test/proof/security-tests.test.ts',
  'test/proof/start.test.ts',
  'test/crash/approval-points.test.ts',
  'test/crash/cancel-points-chain.test.ts',
  'test/crash/cancel-points-orders.test.ts',
  'test/crash/cancel-points-venue.test.ts',
  'test/crash/chat-model-points.test.ts',
  'test/crash/chat-points.test.ts',
  'test/crash/earn-points.test.ts',
  'test/crash/image-points.test.ts',
  'test/crash/order-points.test.ts',
  'test/crash/point-states.test.ts',
  'test/crash/recharge-points.test.ts',
  'test/crash/live-strategy-points.test.ts',
  'test/crash/predmkt-points-exits.test.ts',
  'test/crash/predmkt-points-money.test.ts',
  'test/crash/predmkt-points-orders.test.ts',
  'test/crash/predmkt-points-setup.test.ts',
  'test/crash/schedule-run-points.test.ts',
  'test/crash/svm-points.test.ts',
  'test/crash/swap-points.test.ts',
  'test/crash/transfer-points.test.ts',
  'test/crash/trigger-points.test.ts',
  'test/crash/venue-points-close.test.ts',
  'test/crash/venue-points-exits.test.ts',
  'test/crash/venue-points-fund.test.ts',
  'test/crash/venue-points-open.test.ts',
  'test/crash/venue-points-setup.test.ts',
  'world/conformance/prediction-contracts.test.ts',
  'world/conformance/prediction-replies.test.ts',
  'world/conformance/prediction-settlement.test.ts',
  'world/conformance/prediction-tokens.test.ts',
  'world/conformance/venue-core.test.ts',
  'world/conformance/venue-nktkas.test.ts',
  'world/conformance/venue-rules.test.ts',
  'world/conformance/prediction-clob-client.test.ts',
  'world/conformance/venue-schemas.test.ts',
  'world/conformance/world-evm.test.ts',
  'world/conformance/world-lifi.test.ts',
  'world/conformance/world-model-openai.test.ts',
  'world/conformance/world-solana.test.ts',
  'test/venue/baselines.test.ts',
  'test/venue/bracket.test.ts',
  'test/venue/brief-subscriptions.test.ts',
  'test/venue/custody.test.ts',
  'test/venue/foreign-frames.test.ts',
  'test/venue/foreign-records.test.ts',
  'test/venue/gateway-triggers.test.ts',
  'test/venue/order-events.test.ts',
  'test/venue/own-node.test.ts',
  'test/venue/perp-http.test.ts',
  'test/venue/prediction-exits-model.test.ts',
  'test/venue/prediction-money.test.ts',
  'test/venue/refused-signatures.test.ts',
  'test/venue/spot-http.test.ts',
  'test/venue/stream.test.ts',
  'test/venue/withdrawn-before.test.ts',
]

/** Proofs of durations, which no other test may disturb: they run one by one, after all others. */
export const durationProofs: readonly string[] = [
  'test/crash/failed-broadcasts.test.ts',
  'test/chains/holdings-duration.test.ts',
  'test/chains/token-judges-duration.test.ts',
  'test/journeys/concurrent-acts-duration.test.ts',
  'test/journeys/holdings-duration.test.ts',
  'test/journeys/stream-duration.test.ts',
  'test/proof/door-fairness.test.ts',
  'test/proof/errors-duration.test.ts',
  'test/proof/fairness.test.ts',
  'test/proof/fuzz.test.ts',
  'test/proof/provider-events-duration.test.ts',
  'test/venue/live-strategies.test.ts',
]

export const isDurationProof = (file: string): boolean => durationProofs.includes(file)

const isLater = (file: string): boolean => laterFiles.some(({ files }) => files.includes(file))

export const sizeOf = (file: string): Size => (isDurationProof(file) || isLater(file) ? 'all' : 'test')

/** One sentence for each file whose size is not given, is given twice, or is given to no file. */
export function sizeFindings(files: readonly string[]): string[] {
  const named = [...laterFiles.flatMap((each) => each.files), ...defaultFiles, ...durationProofs]
  return [
    ...named
      .filter((name) => !files.includes(name))
      .map((name) => `${name} is in a size, but does not exist`),
    ...files.flatMap((file) => {
      const count = named.filter((name) => name === file).length
      if (count > 1) return [`${file} is in ${count} sizes`]
      const needsSize = sizedFolders.some((folder) => file.startsWith(folder))
      return needsSize && count === 0 ? [`${file} is in no size: give it one in scripts/test-plan.ts`] : []
    }),
  ]
}

export const discover = (): string[] =>
  ['src', 'test', 'world']
    .filter((folder) => existsSync(`${root}/${folder}`))
    .flatMap((folder) =>
      readdirSync(`${root}/${folder}`, { recursive: true, encoding: 'utf8' }).map(
        (name) => `${folder}/${name.split(sep).join('/')}`,
      ),
    )
    .filter((path) => path.endsWith('.test.ts'))
    .sort()

type Selection = { parts: readonly string[]; globs: readonly string[]; size: Size }

/** Files that are named run in any size. */
export const choose = (files: readonly string[], { parts, globs, size }: Selection): string[] => {
  if (globs.length === 0 && parts.length === 0)
    return files.filter((file) => size === 'all' || sizeOf(file) === 'test')
  return files.filter(
    (file) => globs.some((glob) => matchesGlob(file, glob)) || parts.some((part) => file.includes(part)),
  )
}

/** Tests beside a file of the other two start processes or open a database, and run like journeys. */
const pure = /^(test\/architecture\.test\.ts$|src\/(?!store\/))/
export const isPure = (file: string): boolean => pure.test(file)

/** Files that share a process, and with it their imports, their world and some a gateway. */
type Family = {
  files: RegExp
  /** Over how many processes they are spread, in each size. */
  processes: Record<Size, number>
}

/** In the order in which they start: the run would wait for a long group that starts last. */
const families: readonly Family[] = [
  { files: pure, processes: { test: 1, all: 1 } },
  { files: /^test\/crash\/venue-points-/, processes: { test: 1, all: 9 } },
  { files: /^test\/crash\/predmkt-points-/, processes: { test: 1, all: 4 } },
  { files: /^test\/crash\/cancel-points-/, processes: { test: 1, all: 3 } },
  { files: /^test\/crash\//, processes: { test: 2, all: 24 } },
  { files: /^test\/venue\//, processes: { test: 2, all: 6 } },
  { files: /^test\/journeys\/(admin|npm-start|start)/, processes: { test: 1, all: 4 } },
  { files: /^test\/journeys\//, processes: { test: 4, all: 8 } },
  { files: /^test\/proof\/(start|network)/, processes: { test: 2, all: 3 } },
  { files: /^test\/proof\//, processes: { test: 2, all: 4 } },
  { files: /^test\/chains\//, processes: { test: 1, all: 2 } },
  { files: /^world\/conformance\/venue-/, processes: { test: 1, all: 2 } },
  { files: /^world\/conformance\/world-(crash|realism)/, processes: { test: 1, all: 2 } },
  { files: /^(test|world)\/conformance\//, processes: { test: 1, all: 2 } },
  { files: /^test\/durable\//, processes: { test: 1, all: 1 } },
  { files: /^test\/(chat|market)\//, processes: { test: 1, all: 4 } },
  { files: /^test\/oauth\//, processes: { test: 2, all: 6 } },
  { files: /^test\/(images|mcp|webhooks)\//, processes: { test: 1, all: 4 } },
  { files: /^test\/edges\/fairness/, processes: { test: 1, all: 1 } },
  { files: /^test\/(identity|edges|upstreams)\//, processes: { test: 1, all: 1 } },
  { files: /./, processes: { test: 1, all: 1 } },
]

export type Group = { label: string; files: readonly string[] }

/** The groups of one process each, in the order in which they start. */
export const groupsOf = (files: readonly string[], size: Size): Group[] => {
  const counts = new Map<number, number>()
  const placeOf = (file: string): [family: number, process: number | string] => {
    if (isDurationProof(file)) return [families.length, file]
    const family = families.findIndex((each) => each.files.test(file))
    const count = counts.get(family) ?? 0
    counts.set(family, count + 1)
    return [family, count % families[family]!.processes[size]]
  }
  const placed = files.map((file) => ({ file, place: placeOf(file) }))
  return [...Map.groupBy(placed, ({ place }) => place.join(' ')).values()]
    .toSorted(([a], [b]) => a!.place[0] - b!.place[0])
    .map((group) => group.map(({ file }) => file))
    .map((all) => ({
      label: all.length === 1 ? all[0]! : `${all[0]} and ${all.length - 1} more`,
      files: all,
    }))
}
