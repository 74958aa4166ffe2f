/**
 * Who may import whom, inside src. `x` any import, `type x` only `import type`, `x contract` only contract.ts of a
 * slice. The longest prefix wins; a path without a row may not be imported.
 */
export const allowedImports: Record<string, readonly string[]> = {
  'config.ts': [
    'kernel',
    'config-safety.ts',
    'config-parsers.ts',
    'config-payments.ts',
    'config-predictions.ts',
  ],
  'config-payments.ts': [],
  'config-predictions.ts': ['config-parsers.ts'],
  'config-payments.test.ts': ['config-payments.ts'],
  'config-parsers.ts': [],
  'config-safety.ts': ['kernel', 'config-payments.ts'],
  // Every section's contract in the order of the interface: what documents, the SDK and the CLI read.
  'contracts.ts': ['kernel', 'features contract'],
  // app.ts in several files: one part each, built from settings.
  compose: [
    'kernel',
    'store',
    'durable',
    'invoke',
    'engines',
    'features',
    'upstreams',
    'grammar',
    'agent',
    'config.ts',
    'contracts.ts',
    'release.ts',
  ],
  // The operator's command line: a process of its own on the same database.
  admin: ['kernel', 'store', 'durable', 'engines', 'features', 'upstreams', 'config.ts', 'compose', 'start'],
  // main.ts in several files: everything before and around the app.
  start: ['kernel', 'store', 'config.ts', 'app.ts', 'type compose', 'world'],
  // What a message means and orders, for the gateway and the agent.
  grammar: ['kernel'],
  // Candles, indicators, statistics and charts, without input or output.
  market: ['kernel'],
  // The process that answers chats: no feature, no database.
  agent: ['kernel', 'grammar', 'market', 'upstreams', 'type config.ts', 'contracts.ts', 'release.ts'],
  'agent/main.ts': ['kernel', 'config.ts', 'agent', 'start'],
  // The version of package.json.
  'release.ts': [],
  kernel: [],
  store: ['kernel'],
  upstreams: ['kernel'],
  durable: ['kernel', 'store'],
  // Code that several sections use and no contract names: signed venue actions and their reconciliation, sponsored
  // batches.
  engines: ['kernel', 'store', 'type durable', 'type upstreams'],
  // The keys of users and the rules for what they sign: the lowest engine.
  'engines/custody': ['kernel', 'store'],
  // Orders ask custody for the trading keys and addresses of users.
  'engines/venue': ['kernel', 'store', 'type engines/custody', 'type durable', 'type upstreams'],
  // Backtests of strategies, in threads.
  'engines/backtests': ['kernel', 'market'],
  // The fields of strategies, which schedules and backtests take.
  'engines/strategy-terms': ['kernel', 'market'],
  'engines/candles': ['kernel', 'store', 'market', 'type durable', 'type upstreams'],
  features: ['kernel', 'store', 'engines', 'type durable', 'type invoke', 'type upstreams', 'type features'],
  'features/chat': [
    'kernel',
    'store',
    'engines',
    'grammar',
    'market',
    'type durable',
    'type invoke',
    'type upstreams',
    'type features',
  ],
  'features/markets': ['kernel', 'engines', 'market', 'type upstreams'],
  'features/strategies': [
    'kernel',
    'store',
    'engines',
    'market',
    'type durable',
    'type invoke',
    'type upstreams',
    'type features',
  ],
  // Schedules in words.
  'features/schedules': [
    'kernel',
    'store',
    'engines',
    'grammar',
    'market',
    'type durable',
    'type invoke',
    'type upstreams',
    'type features',
  ],
  // What every door needs for a call: input, admission, output and faults, without a transport.
  invoke: ['kernel', 'type durable'],
  'edges/http': ['kernel', 'invoke'],
  'edges/mcp': ['kernel', 'invoke'],
  // The authorization server: its data is handed in by a feature.
  'edges/oauth': ['kernel', 'invoke', 'type features'],
  'edges/cli': ['kernel', 'sdk', 'contracts.ts', 'features contract'],
  sdk: ['kernel', 'contracts.ts', 'features contract'],
  world: [],
}

/**
 * What the SDK and the command line import of the kernel. The package contains these files, so they import nothing but
 * each other.
 */
export const packagedKernelFiles = [
  'kernel/contract/nearest-names.ts',
  'kernel/money/figure-format.ts',
  'kernel/money/money.ts',
]

/** The two files that import every part, outside the table. */
export const unrestrictedFiles = ['app.ts', 'main.ts']

/** Each folder inside these is a part of its own: its neighbours are other parts to it. */
export const slicedParts = ['engines', 'features', 'upstreams']

/** Which part may import which package; a key that ends in `/` is a scope. */
export const packages: Record<string, readonly string[]> = {
  // Its types only: `kernel/contract/schema.ts` says why.
  typebox: ['type kernel'],
  ajv: ['invoke', 'kernel'],
  'ajv-formats': ['invoke'],
  kysely: ['store', 'durable', 'engines', 'features'],
  pg: ['store', 'admin', 'type durable'],
  fastify: ['edges/http', 'type edges/oauth'],
  '@scalar/': ['edges/http'],
  // Signing and address rules: the venues' adapters build what custody signs.
  viem: ['upstreams/evm', 'upstreams/hyperliquid', 'upstreams/polymarket', 'world'],
  undici: ['upstreams'],
  '@modelcontextprotocol/server': ['edges/mcp'],
  commander: ['edges/cli'],
  // The world's is the identity provider of somebody else.
  'oidc-provider': ['edges/oauth', 'world'],
  'openid-client': ['upstreams/openid'],
  'eventsource-parser': ['upstreams/model'],
  '@simplewebauthn/server': ['features/oauth'],
  jose: ['features/oauth'],
  pino: ['start'],
  'lru-cache': ['kernel', 'upstreams', 'engines', 'features', 'agent'],
  '@nktkas/hyperliquid': ['upstreams/hyperliquid'],
  ws: ['upstreams/agent', 'upstreams/polymarket', 'agent/door', 'world'],
  'tiny-secp256k1': ['upstreams/evm', 'upstreams/hyperliquid', 'upstreams/polymarket', 'world'],
  // Charts and the pictures of the world: SVG to PNG, and the font of their texts.
  '@resvg/resvg-js': ['market', 'world'],
  '@expo-google-fonts/ibm-plex-sans': ['market', 'world'],
  litesvm: ['world'],
  solc: ['world'],
  '@openzeppelin/': ['world'],
  '@uniswap/': ['world'],
  '@foundry-rs/': ['world'],
}

/** Only in *.test.ts, anywhere: generators, and foreign implementations to compare with. */
export const testPackages = [
  '@fal-ai/client',
  'fast-check',
  // Indicators of the market, computed by others.
  'indicatorts',
  'trading-signals',
  'typebox',
  'nodejs-order-book',
  '@solana/kit',
  '@solana-program/system',
  '@solana-program/token',
  '@solana/web3.js',
  '@solana/spl-token',
  'ethers',
  '@lifi/types',
  '@relayprotocol/relay-sdk',
  'openid-client',
  'oauth4webapi',
  'simple-oauth2',
  '@badgateway/oauth2-client',
  'arctic',
  'playwright-core',
  'openai',
  '@anthropic-ai/sdk',
  'stripe',
  'standardwebhooks',
  'jose',
]

/** The kernel does no input or output. */
export const kernelBuiltins = [
  'node:crypto',
  'node:async_hooks',
  'node:util',
  'node:buffer',
  'node:perf_hooks',
]
export const testBuiltins = ['node:test', 'node:assert', 'node:assert/strict']

/**
 * Where an import may be computed: binaries are packages named after their platform, artifacts after their contract.
 */
export const computedImports = ['store/embedded', 'store/embedded-server.ts', 'world/evm/artifact.ts']

/** The settings of the gateway, and the command line of a user, who has no such settings. */
export const environmentReaders = ['src/config.ts', 'src/edges/cli/main.ts']

/** Hints that a file or a function lacks a noun. A function counts with every function inside it. */
export const limits = { fileLines: 350, functionLines: 120, operationLines: 60 }
/** A file of a feature that imports one of these makes operations, admissions or steps of tasks. */
export const operationParts = [
  'implement',
  'taskOf',
  'preparedAct',
  'confirmedAct',
  'createAdmission',
  'createEffect',
  'oneEffect',
  'Steps',
  'StepResult',
  'StepResultOf',
  'EndResult',
  'TaskKind',
]
export const fileLinesExempt = /(^|\/)contract\.ts$|\/(migrations|artifacts)\//

/** Modules under `test/` that run as a process of their own. */
export const testProcesses = ['test/crash/svm-gateway.ts', 'test/crash/slots-instance.ts']

/** A raised limit is a reviewed line here, with its reason. */
export const raisedLimits: Record<string, { fileLines?: number; functionLines?: number; why: string }> = {
  'src/main.ts': { fileLines: 60, why: 'lower on purpose: it starts and stops, and knows nothing else' },
  'src/config.ts': { fileLines: 610, why: 'the one list of all settings' },
}

/** Where floats are calculated with: values that are no money, and have no exact form. */
export const floatPlaces: readonly { path: string; why: string }[] = [
  {
    path: 'src/edges/cli/cell-text.ts',
    why: 'the plain form of a JSON number with an exponent, for display',
  },
  { path: 'src/edges/cli/task-screen.ts', why: 'the seconds that a task took, for display' },
  { path: 'src/edges/mcp/text-index.ts', why: 'the rank of texts in a search' },
  { path: 'src/market/', why: 'statistics and pictures of markets' },
  { path: 'src/agent/research/', why: 'figures of reports on markets' },
  { path: 'src/features/earn/yield.ts', why: 'the yield of a year, for display' },
  { path: 'src/kernel/money/figure-format.ts', why: 'the plain form of a JSON number with an exponent' },
  { path: 'src/upstreams/honeypot/wire.ts', why: 'percentages that the service sends as JSON numbers' },
]

/**
 * Where a value gets a type that the compiler cannot derive (`as unknown as`): the borders of the process, and how often
 * each needs it.
 */
export const castBorders: Record<string, { casts: number; why: string }> = {
  'src/kernel/task/task.ts': { casts: 1, why: 'the data of a row, which the steps of its kind wrote' },
  'src/kernel/task/forgotten-execution.ts': {
    casts: 1,
    why: 'the count of polls and the note in the data of any task',
  },
  'src/kernel/contract/schema.ts': { casts: 1, why: 'constructors of schemas, with the types of typebox' },
  'src/kernel/contract/operation.ts': {
    casts: 2,
    why: 'operations of all contracts in one list, and the functions of a stream that a task fills',
  },
  'src/kernel/contract/decimal-fields.ts': { casts: 1, why: 'schemas of typebox, read as JSON Schema' },
  'src/durable/task/task-view.ts': { casts: 1, why: 'the view of a task as JSON of an event' },
  'src/features/notifications/notifications.ts': { casts: 1, why: 'JSON of stored events' },
  'src/store/database.ts': { casts: 1, why: 'the socket of a connection, which pg does not declare' },
}

/** Refused as any word of a file's or folder's name. */
export const bannedWords = 'utils util helpers helper common shared manager misc'.split(' ')
/** Refused as the whole name; as a word they may mean something (`base-units`). */
export const bannedNames = ['service', 'base', 'types', 'index']
