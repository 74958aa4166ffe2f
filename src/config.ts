import { resolve } from 'node:path'
import {
  addresses,
  BadValue,
  chainAmounts,
  databaseUrl,
  decimal,
  evmAddress,
  hexKeys,
  imageApp,
  integer,
  keyPairs,
  list,
  oneOf,
  optional,
  optionalEvmAddress,
  optionalInteger,
  optionalIssuer,
  optionalOneOf,
  optionalToken,
  optionalUrl,
  optionalWord,
  type Parse,
  plans,
  problemsOfDurability,
  solanaAddresses,
  text,
  tills,
  upstream,
} from './config-parsers.ts'
import {
  problemsOfPayments,
  worldPaymentKey,
  worldPaymentSecret,
  worldPlans,
  worldTills,
} from './config-payments.ts'
import { optionalBuilderKey, worldBuilderKey } from './config-predictions.ts'
import {
  initialOutsideLocal,
  problemsInLocal,
  problemsInProduction,
  problemsOfAgent,
  problemsOfAgentService,
  problemsOfModel,
  problemsOfSignIn,
  problemsOfVenueNetwork,
  problemsOutsideLocal,
  upstreamNames,
  worldKey,
  worldKeyId,
  worldSolanaRecipients,
  worldSolanaSponsors,
  worldSponsors,
  worldVault,
} from './config-safety.ts'

/** The only reader of the environment. Each variable is declared once; an invalid value stops the start. */

type Environment = 'local' | 'staging' | 'production'
type Variable<T> = { doc: string; initial: string; parse: Parse<T> }

const variable = <T>(parse: Parse<T>, initial: string, doc: string): Variable<T> => ({ parse, initial, doc })

export const variables = {
  ENVIRONMENT: variable(
    oneOf<Environment>('local', 'staging', 'production'),
    'local',
    'local, staging or production; production refuses every setting that only the local world may use',
  ),
  HOST: variable(text, '127.0.0.1', 'Address to listen on'),
  PORT: variable(integer(0, 65_535), '8080', 'Port to listen on; 0 picks a free one'),
  BASE_URL: variable(optionalUrl, '', 'Public address of the gateway; empty: http://HOST:PORT'),
  DATA_DIR: variable(text, '.portico', 'Folder for the embedded database and the local world'),
  WORLD_PORT: variable(integer(0, 65_535), '8090', 'Control port of the local world; 0 picks a free one'),
  WORLD_REALISM: variable(
    oneOf('quiet', 'realistic'),
    'quiet',
    'realistic: nodes and venue of the local world sometimes lag, reorganise and reject, as public ones do',
  ),
  WORLD_URL: variable(
    optionalUrl,
    '',
    'Control port of a local world that another process has started, whose clock schedules follow',
  ),
  DATABASE_URL: variable(databaseUrl, '', 'PostgreSQL 15 to 18; empty: the embedded server'),
  DATABASE_DIRECT_URL: variable(
    databaseUrl,
    '',
    'The same database without a pooler, for LISTEN and migrations; empty: DATABASE_URL',
  ),
  DATABASE_DURABILITY: variable(
    optionalOneOf('standby', 'storage', 'single'),
    'single',
    'Where commits are before they are acknowledged. standby: on a synchronous standby, which is checked at each heartbeat; storage: on replicated storage of a managed service; single: on one disk. Required outside the local environment',
  ),
  DATABASE_POOL: variable(integer(4, 200), '20', 'Connections of this instance to the database'),
  ETHEREUM_RPC_URL: variable(upstream, 'local', 'JSON-RPC of Ethereum'),
  BASE_RPC_URL: variable(upstream, 'local', 'JSON-RPC of Base'),
  ARBITRUM_RPC_URL: variable(upstream, 'local', 'JSON-RPC of Arbitrum One'),
  ARBITRUM_SEPOLIA_RPC_URL: variable(
    optionalUrl,
    '',
    'JSON-RPC of Arbitrum Sepolia; required with HYPERLIQUID_NETWORK=testnet and otherwise not served',
  ),
  POLYGON_RPC_URL: variable(upstream, 'local', 'JSON-RPC of Polygon'),
  SOLANA_RPC_URL: variable(upstream, 'local', 'JSON-RPC of Solana'),
  PRICES_URL: variable(
    upstream,
    'local',
    'Price API compatible with DefiLlama, for instance https://coins.llama.fi',
  ),
  RELAY_URL: variable(
    upstream,
    'local',
    'Solver for swaps and bridges, for instance https://api.relay.link; off outside the local environment',
  ),
  RELAY_API_KEY: variable(
    optional,
    'local',
    'Key for the solver, which gives the reasons of refunds only with one',
  ),
  RELAY_QUOTES_PER_MINUTE: variable(
    optionalInteger(0, 1_000_000),
    '',
    'Quotes that this instance may ask of the solver; 0: no limit; empty: 50, 600 with a key, and no limit with the local world',
  ),
  LIFI_URL: variable(
    upstream,
    'local',
    'Second provider of swaps, for instance https://li.quest; off outside the local environment',
  ),
  LIFI_API_KEY: variable(optional, '', 'Key for LI.FI, which answers 75 quotes in two hours without one'),
  LIFI_QUOTES_PER_TWO_HOURS: variable(
    optionalInteger(0, 100_000_000),
    '',
    'Quotes that this instance may ask of LI.FI; 0: no limit; empty: 75, 12000 with a key, and no limit with the local world',
  ),
  COINBASE_URL: variable(
    upstream,
    'local',
    'Public prices of Coinbase, https://api.coinbase.com: the second source for payments in native coins; off outside the local environment',
  ),
  HONEYPOT_URL: variable(
    upstream,
    'local',
    'Service that judges EVM tokens, for instance https://api.honeypot.is; off outside the local environment',
  ),
  RUGCHECK_URL: variable(
    upstream,
    'local',
    'Service that judges Solana tokens, for instance https://api.rugcheck.xyz; off outside the local environment',
  ),
  MODEL_URL: variable(
    upstream,
    'off',
    'Language model, with the version in its path: https://api.openai.com/v1, https://api.anthropic.com/v1 or a compatible server; local: the scripted stand-in of the local world',
  ),
  MODEL_API: variable(oneOf('openai', 'anthropic'), 'openai', 'Interface of the language model'),
  MODEL_KEY: variable(optionalToken, '', 'Key for the language model; empty: none is sent'),
  MODEL_NAME: variable(
    optionalToken,
    '',
    'Name of the model there, required with MODEL_URL; the stand-in is called local',
  ),
  MODEL_NAME_RESEARCH: variable(optionalToken, '', 'Model of ProDeepResearchAgent; empty: MODEL_NAME'),
  MODEL_NAME_MARKET: variable(optionalToken, '', 'Model of MarketAnalyzerAgent; empty: MODEL_NAME'),
  MODEL_PRICE_IN: variable(decimal, '3', 'USD for a million tokens that the model reads, charged in credits'),
  MODEL_PRICE_OUT: variable(
    decimal,
    '15',
    'USD for a million tokens that the model writes, charged in credits',
  ),
  MODEL_TOKENS_MAX: variable(integer(1, 1_000_000), '4096', 'Tokens that one turn of the model may write'),
  MODEL_FIRST_TOKEN_SECONDS: variable(
    integer(1, 600),
    '30',
    'Time that the model has for the first token of a turn',
  ),
  MODEL_IDLE_SECONDS: variable(integer(1, 600), '20', 'Time that a turn may be silent'),
  MODEL_TURN_SECONDS: variable(integer(1, 3_600), '120', 'Time that a turn has, its retries included'),
  AGENT_URL: variable(
    optionalUrl,
    '',
    'Agent service that answers chats, as `portico agent` runs it, without a path; empty: the gateway runs it itself',
  ),
  AGENT_KEY: variable(
    optionalToken,
    '',
    'Key that the gateway and its agent service share, 32 characters at least; required with AGENT_URL',
  ),
  AGENT_PORT: variable(
    integer(0, 65_535),
    '8091',
    'Port of the agent service where it runs by itself; 0 picks a free one',
  ),
  IMAGES_URL: variable(
    upstream,
    'local',
    'Service that makes images, with the protocol of fal, for instance https://fal.run; off outside the local environment',
  ),
  IMAGES_APP: variable(imageApp, 'fal-ai/flux/schnell', 'Model of the service that makes images'),
  IMAGES_KEY: variable(optionalToken, '', 'Key for the service that makes images; empty: none is sent'),
  FAUCET_URL: variable(
    upstream,
    'local',
    'Faucet that funds each new user with test money; not allowed in production',
  ),
  HYPERLIQUID_URL: variable(
    upstream,
    'local',
    'API of the trading venue, for instance https://api.hyperliquid.xyz; off outside the local environment',
  ),
  HYPERLIQUID_NETWORK: variable(
    oneOf('local', 'mainnet', 'testnet'),
    'local',
    'Network that orders and transfers are signed for; a URL of another network is refused; default outside local: mainnet',
  ),
  HYPERLIQUID_WS_URL: variable(
    optionalUrl,
    '',
    'WebSocket of the venue; empty: HYPERLIQUID_URL with ws and /ws',
  ),
  HYPERLIQUID_INFO_URL: variable(
    optionalUrl,
    '',
    'A node of yours that answers supported reads without a rate limit; other requests go to HYPERLIQUID_URL',
  ),
  HYPERLIQUID_EGRESS_ADDRESSES: variable(
    addresses,
    '',
    'Source addresses for requests, separated by commas; the venue limits the request weight per address',
  ),
  HYPERLIQUID_WEIGHT_PER_MINUTE: variable(
    optionalInteger(0, 1_000_000),
    '',
    'Request weight that this instance may use per address; 0: no limit; empty: 1200, and no limit with the quiet local world',
  ),
  HYPERLIQUID_STREAMED_USERS: variable(
    integer(0, 10),
    '10',
    'Stream places of this instance at the venue, one user each; from 5 on, two of them serve all further users in turns',
  ),
  HYPERLIQUID_BALANCE_DRIFT: variable(
    oneOf('freeze', 'log'),
    'freeze',
    'freeze: a difference in cash or tokens alone freezes an account; log: it is only logged; default outside local: log',
  ),
  HYPERLIQUID_BRIDGE_ADDRESS: variable(
    optionalEvmAddress,
    '',
    'Deposit contract of the venue on Arbitrum; empty: the published one of HYPERLIQUID_NETWORK, which for testnet is not verified live',
  ),
  HYPERLIQUID_SPOT_TRIGGERS: variable(
    oneOf('gateway', 'venue'),
    'gateway',
    'Host of take-profits and stop-losses on spot: gateway watches the price itself; venue needs a venue that accepts spot triggers, not verified live',
  ),
  HYPERLIQUID_MIN_ORDER_USD: variable(decimal, '10', 'Smallest order that the venue accepts'),
  HYPERLIQUID_MIN_FUND_USD: variable(
    decimal,
    '5',
    'Smallest deposit that the bridge credits; not verified live',
  ),
  HYPERLIQUID_MIN_WITHDRAW_USD: variable(decimal, '2', 'Smallest withdrawal'),
  HYPERLIQUID_WITHDRAW_FEE_USD: variable(
    decimal,
    '1',
    'Fee of the venue for a withdrawal; not verified live',
  ),
  POLYMARKET_URL: variable(
    upstream,
    'local',
    'Domain of the prediction market, https://polymarket.com, whose services have fixed names below it; off outside the local environment',
  ),
  POLYMARKET_BUILDER_KEY: variable(
    optionalBuilderKey,
    worldBuilderKey,
    'Builder API key of the operator at the prediction market, as key:secret:passphrase; without it nobody is set up there',
  ),
  POLYMARKET_BUILDER_CODE: variable(
    optionalWord,
    '',
    'Code of the operator as a builder, 32 bytes as hexadecimal text, in every order; empty: none',
  ),
  POLYMARKET_MIN_FUND_USD: variable(decimal, '1', 'Smallest funding, and smallest withdrawal of a part'),
  POLYMARKET_RELAYS_PER_DAY: variable(
    integer(1, 100_000),
    '100',
    'Actions of one user at the relayer in a UTC day; withdrawals and redemptions may use twice as many',
  ),
  FINALITY: variable(
    oneOf('local', 'public'),
    'local',
    'local: one block is final; public: the confirmations of each chain',
  ),
  EARN_CHAIN_ID: variable(text, '8453', 'Chain of the vault'),
  EARN_VAULT_ADDRESS: variable(evmAddress, worldVault, 'ERC-4626 vault for USDC on Base'),
  EARN_MIN_DEPOSIT_USDC: variable(decimal, '1', 'Smallest deposit'),
  EARN_MIN_WITHDRAW_USDC: variable(decimal, '1', 'Smallest partial withdrawal; a full one may be smaller'),
  RECHARGE_TILLS: variable(
    tills,
    worldTills,
    'chain:address:amount of each contract that takes payments for credits, on Solana of a wallet, with the most of the native coin that one payment may have; empty: credits are not sold',
  ),
  STRIPE_URL: variable(
    upstream,
    'local',
    'Payment provider that sells plans, with the interface of Stripe: https://api.stripe.com; off outside the local environment',
  ),
  STRIPE_API_KEY: variable(
    optionalToken,
    worldPaymentKey,
    'Key for the payment provider, best a restricted one; production requires a live key',
  ),
  STRIPE_WEBHOOK_SECRETS: variable(
    list,
    worldPaymentSecret,
    'Secrets that sign the events of the payment provider to BASE_URL with /webhooks/stripe, separated by commas; two while one replaces the other',
  ),
  STRIPE_PLANS: variable(
    plans,
    worldPlans,
    'price:name:credits of each plan: a price of the payment provider, the name of the plan, and the credits of each paid interval',
  ),
  STRIPE_PORTAL_CONFIGURATION: variable(
    optionalToken,
    '',
    'Settings of the page on which a plan is changed, by their id at the payment provider; empty: those of the account',
  ),
  STRIPE_RETURN_URL: variable(optionalUrl, '', 'Page to which a payer returns; empty: pages of this gateway'),
  SPONSOR_USER_DAY: variable(
    chainAmounts,
    '0.02,137:10',
    'Gas that sponsors pay per user, day (UTC) and chain, in its native coin: an amount, and chain:amount where a coin is worth less; exits may use twice as much, and full withdrawals are never refused',
  ),
  SPONSOR_KEYS: variable(
    hexKeys,
    worldSponsors.join(','),
    'Private keys of the accounts that pay for gas; each has a nonce sequence of its own',
  ),
  SOLANA_SPONSOR_KEYS: variable(
    hexKeys,
    worldSolanaSponsors.join(','),
    'Ed25519 seeds of the accounts that pay fees and rent on Solana: the first 32 bytes of a key file, as 0x and 64 hex digits; empty: nothing is sent there',
  ),
  SOLANA_SPONSOR_USER_DAY: variable(
    decimal,
    '0.02',
    'SOL that sponsors pay per user and day (UTC) for fees and the rent of token accounts; full exits are never refused',
  ),
  SOLANA_RECIPIENTS: variable(
    solanaAddresses,
    worldSolanaRecipients.join(','),
    'Wallets of services on Solana that may receive the money of users, such as the solver; separated by commas',
  ),
  KEY_ENCRYPTION_KEYS: variable(
    keyPairs,
    `${worldKeyId}:${worldKey}`,
    'id:base64 of 32 bytes; the first one wraps new wallet keys, the others only unwrap existing ones',
  ),
  VAULT_TRANSIT_URL: variable(
    optionalUrl,
    '',
    'Vault transit engine that wraps wallet keys instead; empty: KEY_ENCRYPTION_KEYS',
  ),
  VAULT_TRANSIT_TOKEN: variable(optional, '', 'Token for the transit engine'),
  VAULT_TRANSIT_KEY: variable(text, 'portico', 'Name of the key in the transit engine'),
  AUTH_MODE: variable(
    oneOf('embedded', 'facade', 'proxy', 'off'),
    'embedded',
    'Sign-in of people by OAuth 2.1. embedded: with an account of this gateway; facade: at IDENTITY_ISSUER, and this gateway issues the tokens; proxy: IDENTITY_ISSUER issues them too; off: key pairs only, the default outside local',
  ),
  IDENTITY_ISSUER: variable(
    optionalIssuer,
    '',
    'Issuer of the OpenID provider where people sign in with AUTH_MODE=facade or proxy, exactly as its metadata spells it',
  ),
  IDENTITY_CLIENT_ID: variable(
    optional,
    '',
    'Client id of this gateway there; its redirect is BASE_URL with /oauth/callback. Required with facade; with proxy it serves the pages on which people confirm, and without it the operator confirms',
  ),
  IDENTITY_CLIENT_SECRET: variable(
    optional,
    '',
    'Client secret of this gateway there; empty: a public client',
  ),
  EMAIL_URL: variable(
    optionalUrl,
    '',
    'Address that gets each message as POST {to, subject, text} and delivers it; empty: printed, in local only',
  ),
  EMAIL_TOKEN: variable(optional, '', 'Bearer token for EMAIL_URL'),
  TOKEN_TTL_SECONDS: variable(integer(60, 3_600), '900', 'Lifetime of an access token'),
  FRESH_SIGN_IN_SECONDS: variable(
    integer(60, 3_600),
    '300',
    'Age of the sign-in with which a person may do what only people can do',
  ),
  COOLING_SECONDS: variable(
    integer(1, 2_592_000),
    '60',
    'Time after which a limit that a person has raised takes effect; 86400 outside local',
  ),
  SIGNUP_GRANTS_PER_DAY: variable(
    integer(0, 100_000),
    '100',
    'New agents, and new people, of one address and day that get first credits; 10 outside local',
  ),
  POLICY_TX_USD_MAX: variable(decimal, '25000', 'Highest value of one action, unless the user sets less'),
  POLICY_DAY_USD_MAX: variable(decimal, '100000', 'Highest value within 24 hours, unless the user sets less'),
  CORS_ORIGINS: variable(list, '', 'Origins allowed for browsers, separated by commas'),
  MCP_HOSTS: variable(
    list,
    '',
    'Host names that MCP clients may use beside that of BASE_URL, separated by commas',
  ),
  TRUST_PROXY: variable(list, '', 'Addresses of proxies whose X-Forwarded-For is trusted'),
  RATE_AUTH: variable(
    integer(0, 1_000_000),
    '300',
    'Authentication calls per minute and address; 0: no limit',
  ),
  RATE_READ: variable(integer(0, 1_000_000), '6000', 'Reads per minute and principal; 0: no limit'),
  RATE_MONEY: variable(
    integer(0, 1_000_000),
    '1200',
    'Money operations per minute and principal; 0: no limit',
  ),
  RATE_EXIT: variable(
    integer(0, 1_000_000),
    '6000',
    'Cancels and closes per minute and principal; 0: no limit',
  ),
  RATE_STREAM: variable(integer(0, 1_000_000), '120', 'New streams per minute and principal; 0: no limit'),
  RATE_IMAGE: variable(integer(0, 1_000_000), '120', 'Calls for images per minute and backend; 0: no limit'),
  RATE_REFUSED: variable(
    integer(0, 1_000_000),
    '300',
    'Refused credentials per minute and address; 0: no limit',
  ),
  CONNECTIONS_MAX: variable(
    optionalInteger(16, 1_000_000),
    '',
    'Concurrent client connections; empty: derived from the limit of open files, up to 10000',
  ),
  CONNECTIONS_PER_ADDRESS: variable(
    optionalInteger(4, 1_000_000),
    '',
    'Concurrent connections per address, ignored with TRUST_PROXY; beyond it the longest unused one is closed. Empty: a quarter of CONNECTIONS_MAX',
  ),
  STREAMS_PER_USER: variable(integer(1, 1_000), '10', 'Open event streams of one user at this instance'),
  EVENT_RETENTION_DAYS: variable(
    integer(1, 3_650),
    '7',
    'Days after which events are deleted; a stream that resumes before them begins with reset',
  ),
  WEBHOOK_LOOPBACK: variable(
    oneOf('allowed', 'denied'),
    'allowed',
    'allowed: webhooks may be http addresses of this machine; for local only, denied is the default elsewhere',
  ),
  FILE_RETENTION_DAYS: variable(
    integer(1, 3_650),
    '30',
    'Days after which files of users, such as images, are deleted',
  ),
  REPLY_RETENTION_DAYS: variable(
    integer(1, 3_650),
    '30',
    'Days after which the idempotency keys and stored replies of requests that made no task are deleted',
  ),
  ORDER_QUOTES_PER_MINUTE: variable(
    integer(1, 1_000_000),
    '30',
    'Quotes per minute that this instance asks for to decide whether limit orders and hooks fire',
  ),
  ORDER_RETENTION_DAYS: variable(
    integer(1, 36_500),
    '90',
    'Days after which limit orders, hooks and exits that have ended are deleted; their tasks and transactions stay',
  ),
  TASK_RETENTION_DAYS: variable(
    optionalInteger(1, 36_500),
    '',
    'Days after which an ended task that signed nothing and moved no money is deleted with its idempotency key; empty: kept',
  ),
  MONEY_TASK_RETENTION_DAYS: variable(
    optionalInteger(365, 36_500),
    '',
    'The same for tasks that moved money: a request that repeats such a key moves it again; empty: kept',
  ),
  VENUE_RECORD_RETENTION_DAYS: variable(
    optionalInteger(30, 36_500),
    '',
    'Days after which fills, ended orders and other records of the venue accounts are deleted; empty: kept',
  ),
  MAINTENANCE_MS: variable(
    integer(1_000, 3_600_000),
    '60000',
    'Pause between two rounds of retention, audit of the ledger and wrapping of keys',
  ),
  RUNNER_SLOTS: variable(integer(1, 1_000), '64', 'Tasks that this instance runs at once'),
  LEASE_MS: variable(
    integer(500, 60_000),
    '5000',
    'Lease of a task; after this time without renewal another instance takes it over',
  ),
  LOG_LEVEL: variable(
    oneOf('debug', 'info', 'warn', 'error', 'silent'),
    'warn',
    'Lowest level that is logged',
  ),
  FAILPOINT: variable(
    optional,
    '',
    'name@n: kills the process at the n-th pass of this failpoint; allowed in local only',
  ),
  FAILPOINT_STOP: variable(
    optional,
    '',
    'File that names the failpoint at which the process stops, read at SIGUSR2; allowed in local only',
  ),
  FAILPOINT_LOG: variable(optional, '', 'File that records each pass of a failpoint; allowed in local only'),
} as const satisfies Record<string, Variable<unknown>>

type Name = keyof typeof variables
export type Config = { readonly [K in Name]: ReturnType<(typeof variables)[K]['parse']> }

/** Thrown with every problem at once, so that one start reports all of them. */
export class ConfigRefused extends Error {
  readonly problems: string[]
  constructor(problems: string[]) {
    super(problems.join('\n'))
    this.problems = problems
  }
}

export const usesWorld = (config: Config): boolean => upstreamNames.some((name) => config[name] === 'local')

const initialOf = (name: Name, environment = 'local'): string =>
  (environment === 'local' ? undefined : initialOutsideLocal[name]) ?? variables[name].initial

type Environ = Record<string, string | undefined>

function parseVariables(names: readonly Name[], env: Environ) {
  const problems: string[] = []
  const values: Record<string, unknown> = {}
  for (const name of names) {
    const given =
      env[name] === undefined || env[name] === '' ? initialOf(name, env.ENVIRONMENT || undefined) : env[name]
    try {
      values[name] = variables[name].parse(given)
    } catch (error) {
      if (!(error instanceof BadValue)) throw error
      problems.push(`${name}: wants ${error.message}`)
    }
  }
  return { problems, values }
}

type AgentName =
  | 'ENVIRONMENT'
  | 'HOST'
  | 'AGENT_PORT'
  | 'AGENT_KEY'
  | 'LOG_LEVEL'
  | (Name & `MODEL_${string}`)
export type AgentConfig = Pick<Config, AgentName> & { readonly AGENT_KEY: string }
const isAgentName = (name: Name): name is AgentName =>
  name.startsWith('MODEL_') || ['ENVIRONMENT', 'HOST', 'AGENT_PORT', 'AGENT_KEY', 'LOG_LEVEL'].includes(name)

/** Reads the settings of a separate agent service, which has no database and no wallet key. */
export function readAgentConfig(env: Environ = process.env): AgentConfig {
  const { problems, values } = parseVariables((Object.keys(variables) as Name[]).filter(isAgentName), env)
  if (problems.length === 0) problems.push(...problemsOfAgentService(values as AgentConfig))
  if (problems.length > 0) throw new ConfigRefused(problems)
  return Object.freeze(values) as AgentConfig
}

export function readConfig(env: Environ = process.env): Config {
  const { problems, values } = parseVariables(Object.keys(variables) as Name[], env)
  if (problems.length === 0) {
    const config = values as Config
    if (config.ENVIRONMENT === 'local') problems.push(...problemsInLocal(config))
    problems.push(...problemsOfVenueNetwork(config), ...problemsOfSignIn(config))
    problems.push(
      ...problemsOfModel(config),
      ...problemsOfAgent(config),
      ...problemsOfDurability(config),
      ...problemsOfPayments(config),
    )
    if (config.ENVIRONMENT !== 'local') problems.push(...problemsOutsideLocal(config))
    if (config.ENVIRONMENT === 'production') problems.push(...problemsInProduction(config))
  }
  if (problems.length > 0) throw new ConfigRefused(problems)
  return Object.freeze({ ...values, DATA_DIR: resolve(values.DATA_DIR as string) }) as Config
}

/** Returns the text of `.env.example`: every variable with its default; all are optional. */
export function envExample(): string {
  const lines = Object.entries(variables).map(
    ([name, { doc, initial }]) => `# ${doc}\n# ${name}=${initial}\n`,
  )
  return `# Every variable that Portico reads, with its default. All of them are optional.\n\n${lines.join('\n')}`
}
