import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, afterEach, before, test } from 'node:test'
import type { contract } from '#features/security/contract.ts'
import type { OutputOf } from '#kernel/contract/operation.ts'
import { base58 } from '#upstreams/solana/base58.ts'
import { type ChainsApp, createChainsApp, type User } from './chains-app.ts'

type Answer = OutputOf<typeof contract.entries.check>
type Result = Answer['results'][number]

const issuer = '0xa0Ee7A142d267C1f36714E4a8F75612F20a79720'
const launched = (number: number) => `0x70ce00000000000000000000000000000000000${number}`
const evmTokens = ['fair', 'mild', 'levy', 'trap', 'morph', 'dry', 'thin', 'cool'] as const
const labels = ['plain', 'frozen', 'minted', 'taxed', 'seized', 'hooked', 'locked', 'paused', 'iced', 'whale']
const mint = (label: string) =>
  base58(createHash('sha256').update(`portico local world: token ${label}`).digest())
const [fair, trap, dry] = [1, 4, 6].map(launched)

let app: ChainsApp
let user: User
before(async () => {
  app = await createChainsApp()
  user = await app.addUser()
})
afterEach(async () => {
  await app.control('DELETE', '/faults')
  await app.control('DELETE', '/honeypot/answers')
  await app.control('DELETE', '/rugcheck/answers')
})
after(() => app[Symbol.asyncDispose]())

const tokens = [
  ...evmTokens.map((_, index) => ({ chain_id: '8453', token_address: launched(index + 1) })),
  ...labels.map((label) => ({ chain_id: '7565164', token_address: mint(label) })),
]
const names = [...evmTokens, ...labels]

/** A new instance, which has cached nothing and asks both services. */
const check = async (asked: object[] = tokens): Promise<Result[]> => {
  const { honeypot, rugcheck } = app.urls
  await using instance = await app.instance({}, { honeypot, rugcheck })
  const answer = (await instance.call('security_check', { tokens: asked }, user)) as unknown as Answer
  return answer.results
}
const statusOf = (results: Result[]) =>
  Object.fromEntries(
    results.map(({ status, allowed }, index) => [names[index], allowed ? 'allowed' : status]),
  )
const ofSource = ({ reasons }: Result, source: string) =>
  reasons.filter((each) => each.source === source).map(({ code }) => code)
const setSalesStopped = (stopped: boolean) =>
  app.rpc('eth_sendTransaction', [
    { from: issuer, to: trap, data: `0x668581f6${String(Number(stopped)).padStart(64, '0')}` },
  ])

/** What our own check says alone. */
const expected = {
  fair: 'allowed',
  mild: 'allowed',
  levy: 'flagged',
  trap: 'allowed',
  morph: 'flagged',
  dry: 'api_unavailable',
  thin: 'flagged',
  cool: 'flagged',
  plain: 'allowed',
  ...Object.fromEntries(labels.slice(1).map((label) => [label, 'flagged'])),
}

test('with both services the verdicts are the same, and each service is named', async () => {
  const results = await check()
  assert.deepEqual(statusOf(results), expected)
  assert.equal(results[0]!.provider, 'simulation,honeypot.is')
  assert.equal(results[8]!.provider, 'simulation,rugcheck')
  assert.deepEqual(ofSource(results[2]!, 'honeypot.is'), ['provider_risk'])
  assert.deepEqual(ofSource(results[5]!, 'honeypot.is'), ['not_reported'])
  assert.ok(ofSource(results[9]!, 'rugcheck').includes('freeze_authority'))
  assert.ok(results[9]!.score! > results[8]!.score!)
})

const faults: Record<string, object> = {
  'are down': { refuse: true },
  'answer 429': { status: 429 },
  'answer 503': { status: 503 },
  'send pages': { status: 502, html: true },
  'drop their replies': { drop_reply: true },
}
for (const [what, fault] of Object.entries(faults))
  test(`where the services ${what}, every token has the verdict of our own check`, async () => {
    for (const target of ['honeypot', 'rugcheck']) await app.control('PUT', '/faults', { target, ...fault })
    const results = await check()
    assert.deepEqual(statusOf(results), expected)
    assert.deepEqual(ofSource(results[0]!, 'honeypot.is'), ['provider_unavailable'])
    assert.deepEqual(ofSource(results[8]!, 'rugcheck'), ['provider_unavailable'])
  })

test('services that are silent change no verdict', async () => {
  for (const target of ['honeypot', 'rugcheck']) await app.control('PUT', '/faults', { target, silent: true })
  assert.deepEqual(statusOf(await check()), expected)
})

test('absent fields make no token safe, and no safe token unsafe', async () => {
  const fields = ['honeypotResult', 'simulationResult', 'summary', 'mintAuthority', 'rugged', 'risks']
  for (const service of ['honeypot', 'rugcheck'])
    await app.control('PUT', `/${service}/answers`, { absent: fields })
  const results = await check()
  assert.deepEqual(statusOf(results), expected)
  assert.equal(results[0]!.provider, 'simulation')
  assert.ok(ofSource(results[0]!, 'honeypot.is').includes('not_simulated'))
  assert.ok(ofSource(results[8]!, 'rugcheck').includes('not_reported'))
})

const harmless = {
  summary: { risk: 'very_low', riskLevel: 0, flags: [] },
  simulationSuccess: true,
  honeypotResult: { isHoneypot: false },
  simulationResult: { buyTax: 0, sellTax: 0, transferTax: 0 },
}

test('services that call a trap safe do not make it so', async () => {
  await setSalesStopped(true)
  await app.control('PUT', '/honeypot/answers', { subject: trap, merge: harmless })
  const lie = { mintAuthority: null, freezeAuthority: null, risks: [], rugged: false, score_normalised: 1 }
  for (const label of labels)
    await app.control('PUT', '/rugcheck/answers', { subject: mint(label), merge: lie })
  const results = await check()
  assert.deepEqual(statusOf(results), { ...expected, trap: 'flagged' })
  assert.deepEqual(
    [results[3]!.is_honeypot, results[3]!.risk_level, results[3]!.provider],
    [true, 'honeypot', 'simulation,honeypot.is'],
  )
  await setSalesStopped(false)
})

test('a token without a pool stays unknown, whatever a service says about it', async () => {
  const merge = { ...harmless, token: { address: dry } }
  await app.control('PUT', '/honeypot/answers', { subject: dry, merge })
  const [result] = await check([{ chain_id: '8453', token_address: dry }])
  assert.deepEqual([result!.status, result!.allowed, result!.is_honeypot], ['api_unavailable', false, null])
})

test('a service alone flags a token, and one answer about another token does not count', async () => {
  await app.control('PUT', '/honeypot/answers', {
    subject: fair,
    merge: { honeypotResult: { isHoneypot: true, honeypotReason: 'sales of others fail' } },
  })
  const [flagged] = await check([{ chain_id: '8453', token_address: fair }])
  assert.deepEqual(
    [flagged!.status, flagged!.risk_level, flagged!.is_honeypot],
    ['flagged', 'honeypot', true],
  )
  await app.control('PUT', '/honeypot/answers', { subject: fair, merge: { token: { address: trap } } })
  const [passed] = await check([{ chain_id: '8453', token_address: fair }])
  assert.deepEqual([passed!.status, ofSource(passed!, 'honeypot.is')], ['passed', ['provider_unavailable']])
})

test('an old answer of a service does not hide that a token has changed', async () => {
  await app.control('PUT', '/honeypot/answers', { stale_seconds: 3_600 })
  const token = [{ chain_id: '8453', token_address: trap }]
  assert.equal((await check(token))[0]!.status, 'passed')
  await setSalesStopped(true)
  const [stale] = await check(token)
  assert.deepEqual([stale!.status, ofSource(stale!, 'honeypot.is')], ['flagged', []])
  await app.control('DELETE', '/honeypot/answers')
  const [current] = await check(token)
  assert.deepEqual(ofSource(current!, 'honeypot.is'), ['honeypot'])
  await setSalesStopped(false)
})
