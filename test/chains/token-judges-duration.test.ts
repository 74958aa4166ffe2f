/** How long judges of tokens that are silent delay a check. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, before, test } from 'node:test'
import type { contract } from '#features/security/contract.ts'
import type { OutputOf } from '#kernel/contract/operation.ts'
import { base58 } from '#upstreams/solana/base58.ts'
import { type ChainsApp, createChainsApp, type User } from './chains-app.ts'

type Answer = OutputOf<typeof contract.entries.check>

const labels = ['plain', 'frozen', 'minted', 'taxed', 'seized', 'hooked', 'locked', 'paused', 'iced', 'whale']
const tokens = [
  ...Array.from({ length: 8 }, (_, index) => ({
    chain_id: '8453',
    token_address: `0x70ce00000000000000000000000000000000000${index + 1}`,
  })),
  ...labels.map((label) => ({
    chain_id: '7565164',
    token_address: base58(createHash('sha256').update(`portico local world: token ${label}`).digest()),
  })),
]

let app: ChainsApp
let user: User
before(async () => {
  app = await createChainsApp()
  user = await app.addUser()
})
after(() => app?.[Symbol.asyncDispose]())

/** Checks by a new instance, which has cached no verdict. */
async function check(services: { honeypot?: string; rugcheck?: string }) {
  await using instance = await app.instance({}, services)
  const startedMs = performance.now()
  const answer = (await instance.call('security_check', { tokens }, user)) as unknown as Answer
  const tookMs = performance.now() - startedMs
  return { tookMs, statuses: answer.results.map(({ status, allowed }) => [status, allowed]) }
}

test('services that are silent delay a check by their time limit only', async () => {
  const own = await check({})
  assert.equal(own.statuses.length, tokens.length)
  for (const target of ['honeypot', 'rugcheck']) await app.control('PUT', '/faults', { target, silent: true })
  const { honeypot, rugcheck } = app.urls
  const silent = await check({ honeypot, rugcheck })
  assert.deepEqual(silent.statuses, own.statuses)
  assert.ok(silent.tookMs < 10_000, `${silent.tookMs} ms`)
})
