/** Development settings never serve real money, and the error says what to change. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { test } from 'node:test'
import { mnemonicToAccount, privateKeyToAddress } from 'viem/accounts'
import { ConfigRefused, envExample, readConfig, variables } from '#config.ts'
import { warningsOf, worldSponsors } from '#config-safety.ts'
import { dataFolder, launch, NotReady } from '../harness/gateway.ts'

const mnemonic = 'test test test test test test test test test test test junk'
/** The second account of the mnemonic of every development node. */
const mnemonicKey = '0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d'
const worldVault = '0xea12000000000000000000000000000000008453'
/** As `.env.example` prints it, publicly. */
const worldSponsor = /^# SPONSOR_KEYS=(0x[0-9a-f]{64})/m.exec(envExample())![1]!
const worldKek = /^# KEY_ENCRYPTION_KEYS=(.+)$/m.exec(envExample())![1]!

type Env = Record<string, string>

const productionEnv: Env = {
  ENVIRONMENT: 'production',
  DATABASE_URL: 'postgresql://portico@db.example/portico?sslmode=verify-full',
  DATABASE_DURABILITY: 'standby',
  BASE_URL: 'https://gateway.example',
  ETHEREUM_RPC_URL: 'https://eth.example',
  BASE_RPC_URL: 'https://base.example',
  ARBITRUM_RPC_URL: 'https://arb.example',
  POLYGON_RPC_URL: 'https://pol.example',
  SOLANA_RPC_URL: 'https://sol.example',
  PRICES_URL: 'https://coins.example',
  SPONSOR_KEYS: `0x${randomBytes(32).toString('hex')}`,
  KEY_ENCRYPTION_KEYS: `k1:${randomBytes(32).toString('base64')}`,
  EARN_VAULT_ADDRESS: '0x1111111111111111111111111111111111111111',
}

function problemsOf(env: Env): string[] {
  try {
    readConfig(env)
    return []
  } catch (error) {
    assert.ok(error instanceof ConfigRefused, String(error))
    return error.problems
  }
}
const namesOf = (env: Env) =>
  problemsOf(env)
    .map((problem) => problem.split(':', 1)[0]!)
    .sort()

/** The start as an operator sees it: its exit code, and its whole output. */
async function refusedStart(env: Env): Promise<string> {
  using folder = dataFolder()
  try {
    await using _ = await launch({ env: { DATA_DIR: folder.path, ...env } })
  } catch (error) {
    assert.ok(error instanceof NotReady, String(error))
    assert.equal(error.code, 1, error.message)
    assert.deepEqual(readdirSync(folder.path), [], 'it is refused before anything starts')
    return error.message
  }
  return assert.fail('it started')
}

test('the embedded server has no standby', () => {
  const [problem] = problemsOf({ DATABASE_DURABILITY: 'standby' })
  assert.match(problem ?? '', /^DATABASE_DURABILITY: the embedded server has no standby; set DATABASE_URL/)
  const { DATABASE_URL: url } = productionEnv
  assert.deepEqual(
    problemsOf({ DATABASE_DURABILITY: 'standby', DATABASE_URL: url! }).filter((each) =>
      each.startsWith('DATABASE'),
    ),
    [],
  )
})

test('random keys are never called trivial', () => {
  for (let turn = 0; turn < 2_000; turn++)
    assert.deepEqual(
      problemsOf({
        ...productionEnv,
        SPONSOR_KEYS: `0x${randomBytes(32).toString('hex')}`,
        KEY_ENCRYPTION_KEYS: `k1:${randomBytes(32).toString('base64')}`,
      }),
      [],
    )
})

test('a public https address without TRUST_PROXY is warned of at the start', async () => {
  const behind = { BASE_URL: 'https://gateway.example' }
  assert.match(warningsOf(readConfig(behind)).join(), /TRUST_PROXY is empty/)
  assert.deepEqual(warningsOf(readConfig({ ...behind, TRUST_PROXY: '10.0.0.1' })), [])
  assert.deepEqual(warningsOf(readConfig({})), [])
})

test('a complete production configuration is accepted', () => {
  assert.deepEqual(problemsOf(productionEnv), [])
  assert.deepEqual(problemsOf({ ...productionEnv, ENVIRONMENT: 'staging' }), [])
})

const counted = Array.from({ length: 32 }, (_, n) => (n + 1).toString(16).padStart(2, '0')).join('')
const curveOrder = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n
/** The smallest and largest of the curve, repeated bytes and words, small numbers, bytes in order. */
const trivialKeys = [
  `0x${'1'.padStart(64, '0')}`,
  `0x${'01'.repeat(32)}`,
  `0x${'deadbeef'.repeat(8)}`,
  `0x${'0123456789abcdef'.repeat(4)}`,
  `0x${'1f2e3d4c5b6a7988'.padStart(64, '0')}`,
  `0x${counted}`,
  `0x${(curveOrder - 1n).toString(16)}`,
]

const unsafeSettings: [string, Env, string][] = [
  ...['ETHEREUM', 'BASE', 'ARBITRUM', 'POLYGON', 'SOLANA'].map((chain): [string, Env, string] => [
    `the local ${chain}`,
    { [`${chain}_RPC_URL`]: 'local' },
    `${chain}_RPC_URL`,
  ]),
  ['local prices', { PRICES_URL: 'local' }, 'PRICES_URL'],
  ['a local judge of tokens', { HONEYPOT_URL: 'local' }, 'HONEYPOT_URL'],
  ['the local model', { MODEL_URL: 'local' }, 'MODEL_URL'],
  ['a model without TLS', { MODEL_URL: 'http://model.example/v1', MODEL_NAME: 'm' }, 'MODEL_URL'],
  ['a model without a name', { MODEL_URL: 'https://model.example/v1' }, 'MODEL_NAME'],
  ['the faucet', { FAUCET_URL: 'local' }, 'FAUCET_URL'],
  ['the clock of a local world', { WORLD_URL: 'https://world.example' }, 'WORLD_URL'],
  ['the local venue', { HYPERLIQUID_URL: 'local' }, 'HYPERLIQUID_URL'],
  ['a public sponsor key', { SPONSOR_KEYS: worldSponsor }, 'SPONSOR_KEYS'],
  ['the same in capitals', { SPONSOR_KEYS: `0x${worldSponsor.slice(2).toUpperCase()}` }, 'SPONSOR_KEYS'],
  ['a sponsor of a development mnemonic', { SPONSOR_KEYS: mnemonicKey }, 'SPONSOR_KEYS'],
  ['a node without TLS', { BASE_RPC_URL: 'http://base.example' }, 'BASE_RPC_URL'],
  ['a transit engine without TLS', { VAULT_TRANSIT_URL: 'http://kms.example' }, 'VAULT_TRANSIT_URL'],
  ['a database without TLS', { DATABASE_URL: 'postgresql://portico@db.example/portico' }, 'DATABASE_URL'],
  [
    'a direct database without TLS',
    { DATABASE_DIRECT_URL: 'postgresql://portico@db.example/portico?sslmode=disable' },
    'DATABASE_DIRECT_URL',
  ],
  [
    'a key-encryption key of zeros',
    { KEY_ENCRYPTION_KEYS: `k1:${Buffer.alloc(32).toString('base64')}` },
    'KEY_ENCRYPTION_KEYS',
  ],
  ...trivialKeys.map((key): [string, Env, string] => [
    `the sponsor ${key.slice(0, 6)}..${key.slice(-4)}`,
    { SPONSOR_KEYS: `${productionEnv.SPONSOR_KEYS},${key}` },
    'SPONSOR_KEYS',
  ]),
  ...trivialKeys.map((key): [string, Env, string] => [
    `the key-encryption key ${key.slice(0, 6)}..${key.slice(-4)}`,
    { KEY_ENCRYPTION_KEYS: `k1:${Buffer.from(key.slice(2), 'hex').toString('base64')}` },
    'KEY_ENCRYPTION_KEYS',
  ]),
  ['no sponsor', { SPONSOR_KEYS: '' }, 'SPONSOR_KEYS'],
  ['no key-encryption key', { KEY_ENCRYPTION_KEYS: '' }, 'KEY_ENCRYPTION_KEYS'],
  ['the public key', { KEY_ENCRYPTION_KEYS: worldKek }, 'KEY_ENCRYPTION_KEYS'],
  [
    'the same as a former key',
    { KEY_ENCRYPTION_KEYS: `${productionEnv.KEY_ENCRYPTION_KEYS},${worldKek}` },
    'KEY_ENCRYPTION_KEYS',
  ],
  ['the vault of the local world', { EARN_VAULT_ADDRESS: worldVault }, 'EARN_VAULT_ADDRESS'],
  [
    'the till of the local world',
    { RECHARGE_TILLS: '8453:0x7111000000000000000000000000000000000001:1' },
    'RECHARGE_TILLS',
  ],
  ['one block as finality', { FINALITY: 'local' }, 'FINALITY'],
  ['a failpoint', { FAILPOINT: 'commit@1' }, 'FAILPOINT'],
  ['a failpoint that stops', { FAILPOINT_STOP: '/tmp/point' }, 'FAILPOINT_STOP'],
  ['a log of failpoints', { FAILPOINT_LOG: '/tmp/passed' }, 'FAILPOINT_LOG'],
]

for (const environment of ['production', 'staging'])
  for (const [what, env, name] of unsafeSettings)
    test(`${environment} does not start with ${what}`, () => {
      const problems = problemsOf({ ...productionEnv, ENVIRONMENT: environment, ...env })
      assert.ok(
        problems.length >= 1 && problems.every((each) => each.startsWith(`${name}: `)),
        problems.join('\n'),
      )
    })

test('the public key protects nothing outside this machine', () => {
  assert.deepEqual(problemsOf({}), [])
  assert.deepEqual(problemsOf({ BASE_RPC_URL: 'http://127.0.0.1:8545' }), [])
  const key = { KEY_ENCRYPTION_KEYS: `k1:${randomBytes(32).toString('base64')}` }
  for (const env of [
    { HYPERLIQUID_URL: 'https://api.hyperliquid.xyz', HYPERLIQUID_NETWORK: 'mainnet' },
    { BASE_RPC_URL: 'https://base.example' },
    { DATABASE_URL: 'postgresql://portico@db.example/portico' },
  ] as Env[]) {
    assert.deepEqual(namesOf(env), ['KEY_ENCRYPTION_KEYS'])
    assert.deepEqual(problemsOf({ ...env, ...key }), [])
  }
})

test('no mnemonic of development nodes derives the sponsors of the local world', () => {
  const known = Array.from(
    { length: 20 },
    (_, addressIndex) => mnemonicToAccount(mnemonic, { addressIndex }).address,
  )
  const sponsors = worldSponsors.map((key) => privateKeyToAddress(key as `0x${string}`))
  assert.equal(new Set([...known, ...sponsors]).size, 24)
  for (let addressIndex = 0; addressIndex < 20; addressIndex++) {
    const key = mnemonicToAccount(mnemonic, { addressIndex }).getHdKey().privateKey!
    const env = { ...productionEnv, SPONSOR_KEYS: `0x${Buffer.from(key).toString('hex')}` }
    assert.deepEqual(problemsOf(env), ['SPONSOR_KEYS: a key is public; set one of your own'])
  }
})

const productionOnly: [string, Env, string][] = [
  ['the embedded database', { DATABASE_URL: '' }, 'DATABASE_URL'],
  ['no public address', { BASE_URL: '' }, 'BASE_URL'],
  ['an address without TLS', { BASE_URL: 'http://gateway.example' }, 'BASE_URL'],
  ['any faucet', { FAUCET_URL: 'https://faucet.example' }, 'FAUCET_URL'],
  ['every origin', { CORS_ORIGINS: '*' }, 'CORS_ORIGINS'],
  ['every origin among others', { CORS_ORIGINS: 'https://app.example,*' }, 'CORS_ORIGINS'],
]
for (const [what, env, name] of productionOnly)
  test(`production does not start with ${what}`, () => {
    assert.deepEqual(namesOf({ ...productionEnv, ...env }), [name])
  })

test('a production without any setting gets every error at once, and no secret with it', async () => {
  const messages = await refusedStart({ ENVIRONMENT: 'production', FAILPOINT: 'commit@1' })
  const missing = [
    'DATABASE_URL',
    'BASE_URL',
    'SPONSOR_KEYS',
    'KEY_ENCRYPTION_KEYS',
    'EARN_VAULT_ADDRESS',
    'FAILPOINT',
  ]
  const upstreams = ['ETHEREUM', 'BASE', 'ARBITRUM', 'POLYGON', 'SOLANA'].map((chain) => `${chain}_RPC_URL`)
  for (const name of [...missing, ...upstreams, 'PRICES_URL'])
    assert.match(messages, new RegExp(`^portico cannot start: ${name}: \\S`, 'm'), name)
  assert.doesNotMatch(messages, /\n\s+at /)
  const known = await refusedStart({
    ...productionEnv,
    SPONSOR_KEYS: worldSponsor,
    KEY_ENCRYPTION_KEYS: worldKek,
  })
  assert.match(known, /SPONSOR_KEYS[\s\S]*KEY_ENCRYPTION_KEYS|KEY_ENCRYPTION_KEYS[\s\S]*SPONSOR_KEYS/)
  assert.ok(!known.includes(worldSponsor.slice(2)) && !known.includes(worldKek.split(':')[1]!), known)
})

test('invalid settings are all named, with their valid form and without their values', async () => {
  const bad: Env = {
    PORT: 'eighty',
    LEASE_MS: '1',
    ENVIRONMENT: 'prod',
    DATABASE_URL: 'mysql://root:hunter2@db/x',
    SPONSOR_KEYS: '0xdeadbeefdeadbeef',
    KEY_ENCRYPTION_KEYS: 'k1:c2hvcnQ=',
    BASE_URL: 'not a url',
    POLICY_TX_USD_MAX: '1e9',
    LOG_LEVEL: 'loud',
    RATE_READ: '-1',
    EARN_VAULT_ADDRESS: '0x12',
    TOKEN_TTL_SECONDS: '99999',
    DATABASE_POOL: '1.5',
  }
  assert.deepEqual(namesOf(bad), Object.keys(bad).sort())
  const messages = await refusedStart(bad)
  for (const name of Object.keys(bad))
    assert.match(messages, new RegExp(`^portico cannot start: ${name}: wants `, 'm'))
  for (const secret of ['hunter2', 'deadbeef', 'c2hvcnQ']) assert.ok(!messages.includes(secret), messages)
})

test('a sign-in elsewhere needs to know where', () => {
  assert.deepEqual(namesOf({ AUTH_MODE: 'facade' }), ['IDENTITY_CLIENT_ID', 'IDENTITY_ISSUER'])
  const identity = { AUTH_MODE: 'facade', IDENTITY_CLIENT_ID: 'portico' }
  assert.deepEqual(namesOf({ AUTH_MODE: 'proxy' }), ['IDENTITY_ISSUER'])
  assert.deepEqual(namesOf({ ...identity, IDENTITY_ISSUER: 'http://127.0.0.1:1' }), [])
  assert.deepEqual(namesOf({ ...identity, IDENTITY_ISSUER: 'https://id.example.com/?tenant=1' }), [
    'IDENTITY_ISSUER',
  ])
})

test('every variable names itself when it is wrong', () => {
  const lenientNames = Object.entries(variables).filter(
    ([name]) => problemsOf({ [name]: '\u0001 no such value' }).length === 0,
  )
  // Text and lists accept anything; the code that uses them checks them.
  const free = [
    'HOST',
    'DATA_DIR',
    'EARN_CHAIN_ID',
    'VAULT_TRANSIT_TOKEN',
    'VAULT_TRANSIT_KEY',
    'CORS_ORIGINS',
    'RELAY_API_KEY',
    'LIFI_API_KEY',
    'EMAIL_TOKEN',
    'IDENTITY_CLIENT_ID',
    'IDENTITY_CLIENT_SECRET',
    'MCP_HOSTS',
    'STRIPE_WEBHOOK_SECRETS',
  ]
  const more = ['TRUST_PROXY', 'FAILPOINT', 'FAILPOINT_STOP', 'FAILPOINT_LOG']
  assert.deepEqual(lenientNames.map(([name]) => name).sort(), [...free, ...more].sort())
})
