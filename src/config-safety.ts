import { createHash } from 'node:crypto'
import { worldSolanaTill, worldTill } from './config-payments.ts'
import { publishedBridges } from './kernel/money/venue-actions.ts'
import {
  isRemote,
  isRemoteDatabase,
  isUnencryptedRemote,
  isUnencryptedRemoteDatabase,
} from './kernel/wire/remote-url.ts'

/** Checks of combinations of settings: those for development must not be used with real money. */

export const worldKeyId = 'world'
const sha256 = (value: string) => createHash('sha256').update(value).digest()
/** The key of the local world is public, so it may protect only that world's test money. */
export const worldKey = sha256('portico local world').toString('base64')
/** Only the local world funds the accounts of these keys; neither development nodes nor public nodes do. */
export const worldSponsors = [1, 2, 3, 4].map(
  (index) => `0x${sha256(`portico local world sponsor ${index}`).toString('hex')}`,
)
export const worldSolanaSponsors = [1, 2].map(
  (number) => `0x${sha256(`portico local world: solana sponsor ${number}`).toString('hex')}`,
)
export const worldSolanaRecipients = ['GsvUt13LU6Jn84Pm57EhSzjnScCo3sVUdMM2Mac1hXZs']
/**
 * Digests of the 20 private keys that every development node funds. The keys are public, so anybody can spend their
 * funds.
 */
const mnemonicKeys =
  '60a09e4357868c1e 095101cf732c298a bb4978fbe7638de8 f02322197a196ceb 5de22089c247b9b2 59feecfa04eb096b b69d88ff1ad5834a b6b9ee08c38f62da be394de37f9d6cf6 dd0102d1cd0c6ac7 bc695e76adbd4ba5 f08cf7b46c09669b 7112de5abbaaf618 c9af1927cd58e92d 9ebbe88c52f86818 9794bae81f0d5dd2 89fdd4bd49fc0e2a 97bc0c40d645cfaa 609101d4dd3170f5 7d2c370c3a5748fa'
export const worldVault = '0xea12000000000000000000000000000000008453'

const moneyNames = [
  'ETHEREUM_RPC_URL',
  'BASE_RPC_URL',
  'ARBITRUM_RPC_URL',
  'POLYGON_RPC_URL',
  'SOLANA_RPC_URL',
  'HYPERLIQUID_URL',
  'POLYMARKET_URL',
  'RELAY_URL',
  'LIFI_URL',
] as const

export const upstreamNames = [
  'ETHEREUM_RPC_URL',
  'BASE_RPC_URL',
  'ARBITRUM_RPC_URL',
  'POLYGON_RPC_URL',
  'SOLANA_RPC_URL',
  'HYPERLIQUID_URL',
  'POLYMARKET_URL',
  'RELAY_URL',
  'LIFI_URL',
  'PRICES_URL',
  'HONEYPOT_URL',
  'RUGCHECK_URL',
  'COINBASE_URL',
  'MODEL_URL',
  'IMAGES_URL',
  'STRIPE_URL',
  'FAUCET_URL',
] as const

/** These upstreams are off outside the local environment unless their URLs are set. */
const optionalUpstreamNames: readonly string[] = [
  'FAUCET_URL',
  'HONEYPOT_URL',
  'RUGCHECK_URL',
  'HYPERLIQUID_URL',
  'POLYMARKET_URL',
  'RELAY_URL',
  'LIFI_URL',
  'COINBASE_URL',
  'IMAGES_URL',
  'STRIPE_URL',
]

/** The values of unset settings outside the local environment, where the local world is no default. */
export const initialOutsideLocal: Readonly<Record<string, string>> = {
  ...Object.fromEntries(optionalUpstreamNames.map((name) => [name, 'off'])),
  SPONSOR_KEYS: '',
  SOLANA_SPONSOR_KEYS: '',
  SOLANA_RECIPIENTS: '',
  KEY_ENCRYPTION_KEYS: '',
  RELAY_API_KEY: '',
  RECHARGE_TILLS: '',
  STRIPE_API_KEY: '',
  STRIPE_WEBHOOK_SECRETS: '',
  STRIPE_PLANS: '',
  DATABASE_DURABILITY: '',
  FINALITY: 'public',
  AUTH_MODE: 'off',
  COOLING_SECONDS: '86400',
  SIGNUP_GRANTS_PER_DAY: '10',
  WEBHOOK_LOOPBACK: 'denied',
  POLYMARKET_BUILDER_KEY: '',
  HYPERLIQUID_NETWORK: 'mainnet',
  // The venue's format of withdrawals and fees is not verified live, and a false alarm would freeze a user.
  HYPERLIQUID_BALANCE_DRIFT: 'log',
}

type VenueNetwork = 'local' | 'mainnet' | 'testnet'

type CheckedSettings = { readonly [K in (typeof upstreamNames)[number]]: string | undefined } & {
  readonly ENVIRONMENT: 'local' | 'staging' | 'production'
  readonly BASE_URL: string | undefined
  readonly WORLD_URL: string | undefined
  readonly TRUST_PROXY: readonly string[]
  readonly CORS_ORIGINS: readonly string[]
  readonly DATABASE_URL: string | undefined
  readonly DATABASE_DIRECT_URL: string | undefined
  readonly DATABASE_DURABILITY: 'standby' | 'storage' | 'single' | undefined
  readonly ARBITRUM_SEPOLIA_RPC_URL: string | undefined
  readonly HYPERLIQUID_NETWORK: VenueNetwork
  readonly HYPERLIQUID_WS_URL: string | undefined
  readonly HYPERLIQUID_INFO_URL: string | undefined
  readonly HYPERLIQUID_BRIDGE_ADDRESS: string | undefined
  readonly EARN_VAULT_ADDRESS: string
  readonly RECHARGE_TILLS: readonly { address: string }[]
  readonly FINALITY: 'local' | 'public'
  readonly KEY_ENCRYPTION_KEYS: readonly { key: string }[]
  readonly VAULT_TRANSIT_URL: string | undefined
  readonly AUTH_MODE: 'embedded' | 'facade' | 'proxy' | 'off'
  readonly IDENTITY_ISSUER: string | undefined
  readonly IDENTITY_CLIENT_ID: string | undefined
  readonly EMAIL_URL: string | undefined
  readonly MODEL_NAME: string | undefined
  readonly AGENT_URL: string | undefined
  readonly AGENT_KEY: string | undefined
  readonly SPONSOR_KEYS: readonly string[]
  readonly SOLANA_SPONSOR_KEYS: readonly string[]
  readonly WEBHOOK_LOOPBACK: 'allowed' | 'denied'
  readonly FAILPOINT: string | undefined
  readonly FAILPOINT_STOP: string | undefined
  readonly FAILPOINT_LOG: string | undefined
}

const isPublicKey = (key: string) => {
  const text = key.toLowerCase()
  const isWorldKey = worldSponsors.includes(text) || worldSolanaSponsors.includes(text)
  return isWorldKey || mnemonicKeys.includes(sha256(text).toString('hex').slice(0, 16))
}

const halfBytes = 16
const differentMin = 8

/** Detects keys that are small numbers, repeat bytes or count up: 16 random bytes have about 15.5 distinct values and steps. */
function isWeak(bytes: Uint8Array): boolean {
  const steps = bytes.map((byte, at) => byte - bytes[at - 1]!).subarray(1)
  const parts = [bytes, steps].flatMap((all) => [all.subarray(0, halfBytes), all.subarray(-halfBytes)])
  return parts.some((part) => new Set(part).size < differentMin)
}

const isWeakKey = (key: string) => isWeak(Buffer.from(key, 'base64'))
const isWeakSponsor = (key: string) => isWeak(Buffer.from(key.slice(2), 'hex'))

/** The public default key may protect only test money. */
export function problemsInLocal(config: CheckedSettings): string[] {
  if (!config.KEY_ENCRYPTION_KEYS.some(({ key }) => key === worldKey)) return []
  const real = moneyNames.find((name) => isRemote(config[name]))
  const database = isRemoteDatabase(config.DATABASE_URL) ? 'DATABASE_URL' : undefined
  const name = real ?? database
  return name === undefined
    ? []
    : [
        `KEY_ENCRYPTION_KEYS: the default key is public, and ${name} is not on this machine; set a key of your own`,
      ]
}

/** Settings that must never be used with real money. */
export function problemsOutsideLocal(config: CheckedSettings): string[] {
  const problems: string[] = []
  const report = (name: keyof CheckedSettings, why: string) => problems.push(`${name}: ${why}`)
  for (const name of upstreamNames)
    if (config[name] === 'local')
      report(
        name,
        'the local world is for the local environment only; set the URL of the public service, or off',
      )
  if (config.WORLD_URL) report('WORLD_URL', 'the local world is for the local environment only; unset it')
  if (config.KEY_ENCRYPTION_KEYS.length === 0 && !config.VAULT_TRANSIT_URL)
    report('KEY_ENCRYPTION_KEYS', 'a key-encryption key is required')
  if (config.KEY_ENCRYPTION_KEYS.some(({ key }) => key === worldKey))
    report('KEY_ENCRYPTION_KEYS', 'the default key is public; set a key of your own')
  // Only the current key has to be random, because former keys only unwrap existing keys.
  if (config.KEY_ENCRYPTION_KEYS.slice(0, 1).some(({ key }) => isWeakKey(key)))
    report('KEY_ENCRYPTION_KEYS', 'a key is not random; make one with `openssl rand -base64 32`')
  const otherUpstreamNames = [
    'ARBITRUM_SEPOLIA_RPC_URL',
    'HYPERLIQUID_WS_URL',
    'VAULT_TRANSIT_URL',
    'EMAIL_URL',
    'IDENTITY_ISSUER',
    'AGENT_URL',
  ] as const
  for (const name of [...upstreamNames, ...otherUpstreamNames])
    if (isUnencryptedRemote(config[name]))
      report(name, 'the connection to another machine lacks TLS; set an https or wss URL')
  if (config.DATABASE_DURABILITY === undefined)
    report('DATABASE_DURABILITY', 'set where commits are kept: standby, storage, or single for one disk')
  for (const name of ['DATABASE_URL', 'DATABASE_DIRECT_URL'] as const)
    if (isUnencryptedRemoteDatabase(config[name]))
      report(name, 'the connection to another machine lacks TLS; add sslmode=verify-full')
  if (config.AUTH_MODE === 'embedded' && !config.EMAIL_URL)
    report('EMAIL_URL', 'AUTH_MODE=embedded sends sign-in codes by email; set the address that delivers them')
  if (config.AUTH_MODE !== 'off' && !config.BASE_URL)
    report('BASE_URL', `AUTH_MODE=${config.AUTH_MODE} publishes it as the issuer; set the public address`)
  if (config.SPONSOR_KEYS.length === 0)
    report('SPONSOR_KEYS', 'at least one account that pays for gas is required')
  if (config.SPONSOR_KEYS.some(isPublicKey)) report('SPONSOR_KEYS', 'a key is public; set one of your own')
  if (config.SPONSOR_KEYS.some(isWeakSponsor))
    report('SPONSOR_KEYS', 'a key is not random; make one with `openssl rand -hex 32`')
  if (config.SOLANA_SPONSOR_KEYS.some(isPublicKey))
    report('SOLANA_SPONSOR_KEYS', 'a key is public; set one of your own')
  if (config.SOLANA_SPONSOR_KEYS.some(isWeakSponsor))
    report('SOLANA_SPONSOR_KEYS', 'a key is not random; make one with `openssl rand -hex 32`')
  if (config.EARN_VAULT_ADDRESS.toLowerCase() === worldVault)
    report(
      'EARN_VAULT_ADDRESS',
      'this vault exists only in the local world; set the vault on the configured chain',
    )
  if (config.RECHARGE_TILLS.some(({ address }) => [worldTill, worldSolanaTill].includes(address)))
    report(
      'RECHARGE_TILLS',
      'these are of the local world; set the contracts that you deployed, and your wallet',
    )
  if (config.HYPERLIQUID_URL && config.HYPERLIQUID_NETWORK === 'local')
    report('HYPERLIQUID_NETWORK', 'local is for the local world only; set mainnet or testnet')
  if (config.FINALITY === 'local')
    report('FINALITY', 'one block is not final on a public chain; set FINALITY=public')
  if (config.WEBHOOK_LOOPBACK === 'allowed')
    report('WEBHOOK_LOOPBACK', 'users could reach this machine; allowed is for the local environment only')
  if (config.FAILPOINT) report('FAILPOINT', 'failpoints are for tests only; unset it')
  if (config.FAILPOINT_STOP) report('FAILPOINT_STOP', 'failpoints are for tests only; unset it')
  if (config.FAILPOINT_LOG) report('FAILPOINT_LOG', 'failpoints are for tests only; unset it')
  return problems
}

export function problemsInProduction(config: CheckedSettings): string[] {
  const problems: string[] = []
  if (!config.DATABASE_URL) problems.push('DATABASE_URL: production requires an external database server')
  if (!config.BASE_URL?.startsWith('https://'))
    problems.push('BASE_URL: production requires the public https address')
  if (config.FAUCET_URL) problems.push('FAUCET_URL: production has no faucet; unset it')
  if (config.CORS_ORIGINS.includes('*'))
    problems.push('CORS_ORIGINS: * is not allowed in production; list the origins')
  return problems
}

/** If the settings name a mode of sign-in, it must be complete, or the gateway does not start. */
export function problemsOfSignIn(config: CheckedSettings): string[] {
  const { AUTH_MODE: mode } = config
  if (mode !== 'facade' && mode !== 'proxy') return []
  const needed = ['IDENTITY_ISSUER', ...(mode === 'facade' ? (['IDENTITY_CLIENT_ID'] as const) : [])] as const
  return needed.flatMap((name) => (config[name] ? [] : [`${name}: AUTH_MODE=${mode} requires it`]))
}

/** A public service has many models and no default one, so the settings must name a model. */
export function problemsOfModel({
  MODEL_URL: url,
  MODEL_NAME: name,
}: Pick<CheckedSettings, 'MODEL_URL' | 'MODEL_NAME'>): string[] {
  return url === undefined || url === 'local' || name !== undefined
    ? []
    : ['MODEL_NAME: MODEL_URL requires it; set the name of a model of this service']
}

const agentKeyMin = 32

/** With the agent key a process reads what users ask, and answers them, so the key must be long. */
function problemsOfAgentKey({ AGENT_KEY: key }: { AGENT_KEY: string | undefined }, by: string): string[] {
  if (key === undefined) return [`AGENT_KEY: ${by} requires it; make one with \`openssl rand -hex 32\``]
  return key.length >= agentKeyMin ? [] : [`AGENT_KEY: wants ${agentKeyMin} characters at least`]
}

export function problemsOfAgentService(
  config: Pick<CheckedSettings, 'ENVIRONMENT' | 'AGENT_KEY' | 'MODEL_URL' | 'MODEL_NAME'>,
): string[] {
  const { ENVIRONMENT: environment, MODEL_URL: model } = config
  return [
    ...problemsOfAgentKey(config, 'the agent service'),
    ...problemsOfModel(config),
    ...(model === 'local' ? ['MODEL_URL: local is the world of a gateway; set the URL of a model'] : []),
    ...(environment !== 'local' && isUnencryptedRemote(model)
      ? ['MODEL_URL: the connection to another machine lacks TLS; set an https URL']
      : []),
  ]
}

export function problemsOfAgent(config: CheckedSettings): string[] {
  const { AGENT_URL: url } = config
  if (url === undefined) return []
  const isService = /^https?:$/.test(new URL(url).protocol)
  return [
    ...(isService ? [] : ['AGENT_URL: wants an http or https URL']),
    ...problemsOfAgentKey(config, 'AGENT_URL'),
  ]
}

const venueNetworks = ['mainnet', 'testnet'] as const

/** An action signed for one network must never be sent to another. */
export function problemsOfVenueNetwork(config: CheckedSettings): string[] {
  const { HYPERLIQUID_NETWORK: network, HYPERLIQUID_URL: url } = config
  if (url === undefined) return []
  const named = ['HYPERLIQUID_URL', 'HYPERLIQUID_WS_URL', 'HYPERLIQUID_INFO_URL'] as const
  const problems = named.flatMap((name) => {
    const value = config[name]
    const other = value && networkOfUrl(value)
    if (!other || other === network) return []
    return [`${name}: the URL is that of ${other}, but HYPERLIQUID_NETWORK is ${network}`]
  })
  const bridge = config.HYPERLIQUID_BRIDGE_ADDRESS?.toLowerCase()
  const bridged = venueNetworks.find((name) => publishedBridges[name].address.toLowerCase() === bridge)
  if (bridged && publishedBridges[bridged].chainId !== publishedBridges[network].chainId)
    problems.push(
      `HYPERLIQUID_BRIDGE_ADDRESS: the address is the bridge of ${bridged}, but HYPERLIQUID_NETWORK is ${network}`,
    )
  if (network === 'testnet' && !config.ARBITRUM_SEPOLIA_RPC_URL)
    problems.push(
      'ARBITRUM_SEPOLIA_RPC_URL: HYPERLIQUID_NETWORK=testnet requires it, because its deposits are made on this chain',
    )
  if (config.ENVIRONMENT === 'production' && network !== 'mainnet')
    problems.push('HYPERLIQUID_NETWORK: production requires mainnet')
  return problems
}

/** Returns the venue network of a URL; undefined if its host reveals none, as for a private node or proxy. */
function networkOfUrl(url: string): VenueNetwork | undefined {
  if (url === 'local') return 'local'
  const host = new URL(url).hostname
  if (/(^|\.)hyperliquid-testnet\.xyz$/i.test(host)) return 'testnet'
  return /(^|\.)hyperliquid\.xyz$/i.test(host) ? 'mainnet' : undefined
}

/** Problems of which a start only warns. */
export function warningsOf({
  BASE_URL,
  TRUST_PROXY,
}: Pick<CheckedSettings, 'BASE_URL' | 'TRUST_PROXY'>): string[] {
  // The gateway serves plain HTTP, so an https address implies a proxy that terminates TLS.
  const hasProxy = BASE_URL?.startsWith('https://') ?? false
  if (!hasProxy || TRUST_PROXY.length > 0) return []
  return [
    'BASE_URL is https, so requests come through a proxy, but TRUST_PROXY is empty: all clients share the limits of one address. Set TRUST_PROXY to the address of the proxy',
  ]
}
