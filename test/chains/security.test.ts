import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, before, test } from 'node:test'
import type { contract } from '#features/security/contract.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { OutputOf } from '#kernel/contract/operation.ts'
import type { NetRequest } from '#kernel/wire/upstream-http.ts'
import { base58 } from '#upstreams/solana/base58.ts'
import { eventually } from '../harness/gateway.ts'
import { type ChainsApp, createChainsApp, type User } from './chains-app.ts'

type Answer = OutputOf<typeof contract.entries.check>
type Result = Answer['results'][number]

const issuer = '0xa0Ee7A142d267C1f36714E4a8F75612F20a79720'
const launched = (number: number) => `0x70ce00000000000000000000000000000000000${number}`
const [fair, mild, levy, trap, morph, dry, thin, cool, shift] = [1, 2, 3, 4, 5, 6, 7, 8, 9].map(launched)
const facet = `0x70ce${'a'.padStart(36, '0')}`
const base = '8453'
const solana = '7565164'
const mint = (label: string) =>
  base58(createHash('sha256').update(`portico local world: token ${label}`).digest())

let app: ChainsApp
let user: User
before(async () => {
  app = await createChainsApp()
  user = await app.addUser()
})
after(() => app[Symbol.asyncDispose]())

const check = async (chain_id: string, ...addresses: (string | undefined)[]): Promise<Answer> => {
  const tokens = addresses.map((token_address) => ({ chain_id, token_address }))
  return (await app.call('security_check', { tokens }, user)) as unknown as Answer
}
const one = async (chainId: string, address: string | undefined): Promise<Result> =>
  (await check(chainId, address)).results[0]!
const setSalesStopped = (stopped: boolean) =>
  app.rpc('eth_sendTransaction', [
    { from: issuer, to: trap, data: `0x668581f6${String(Number(stopped)).padStart(64, '0')}` },
  ])
const codesOf = ({ reasons }: Result) => reasons.map(({ code }) => code)
const shown = (result: Result) => ({
  status: result.status,
  verdict: result.verdict,
  allowed: result.allowed,
  codes: codesOf(result),
})

test('every launched token of an EVM chain has its own verdict by the simulation alone', async () => {
  for (const chainId of ['1', '8453', '42161', '137']) {
    const all = [fair, mild, levy, trap, morph, dry, thin, cool, shift, facet]
    const { all_passed, results } = await check(chainId, ...all)
    assert.equal(all_passed, false)
    assert.deepEqual(
      results.map((each) => [each.token_address, each.status, each.allowed, codesOf(each).join()]),
      [
        [fair, 'passed', true, ''],
        [mild, 'passed', true, 'owner_not_renounced,buy_tax,sell_tax'],
        [levy, 'flagged', false, 'owner_not_renounced,buy_tax,sell_tax'],
        [trap, 'passed', true, 'owner_not_renounced'],
        [morph, 'flagged', false, 'upgradeable'],
        [dry, 'api_unavailable', false, 'no_pool'],
        [thin, 'flagged', false, 'thin_liquidity'],
        [cool, 'flagged', false, 'transfer_failed,sell_failed'],
        [shift, 'flagged', false, 'upgradeable'],
        [facet, 'flagged', false, 'upgradeable'],
      ],
      chainId,
    )
    assert.ok(results.every((each) => BigInt(each.simulated_at_block ?? '0') > 0n))
  }
})

test('taxes are measured: none, a small one, and 3 % with 25 %', async () => {
  const { results } = await check(base, fair, mild, levy)
  assert.deepEqual(
    results.map(({ buy_tax, transfer_tax, is_honeypot }) => [buy_tax, transfer_tax, is_honeypot]),
    [
      [0, 0, false],
      [0.01, 0, false],
      [0.03, 0, false],
    ],
  )
  const [none, small, large] = results.map(({ sell_tax }) => sell_tax!)
  assert.equal(none, 0)
  assert.ok(Math.abs(small! - 0.02) < 0.0003, String(small))
  assert.ok(Math.abs(large! - 0.25) < 0.0005, String(large))
})

test('a token whose owner stops sales after a check is a honeypot at the next one', async () => {
  const before = await one(base, trap)
  assert.deepEqual([before.status, before.is_honeypot], ['passed', false])
  await setSalesStopped(true)
  const { verdictOf } = app.main.features.security.verdicts
  const flipped = await eventually(async () => {
    const [verdict] = await verdictOf([{ chainId: base, address: trap! }], { userId: user.id })
    return verdict?.status === 'flagged' ? verdict : undefined
  }, 'the sales are stopped')
  assert.deepEqual([flipped.riskLevel, flipped.isHoneypot, flipped.allowed], ['honeypot', true, false])
  const seen = await one(base, trap)
  assert.deepEqual([seen.status, seen.risk_level, seen.is_honeypot], ['flagged', 'honeypot', true])
  assert.ok(codesOf(seen).includes('sell_failed'))
  await setSalesStopped(false)
})

test('every launched mint of Solana has its own verdict', async () => {
  const labels = [
    'plain',
    'frozen',
    'minted',
    'taxed',
    'seized',
    'hooked',
    'locked',
    'paused',
    'iced',
    'whale',
  ]
  const { results } = await check(solana, ...labels.map(mint))
  assert.deepEqual(
    results.map((each, index) => [labels[index], each.status, codesOf(each).join()]),
    [
      ['plain', 'passed', ''],
      ['frozen', 'flagged', 'mint_authority,freeze_authority'],
      ['minted', 'flagged', 'mint_authority'],
      ['taxed', 'flagged', 'mint_authority,transfer_fee_authority,transfer_tax'],
      ['seized', 'flagged', 'mint_authority,permanent_delegate'],
      ['hooked', 'flagged', 'transfer_hook'],
      ['locked', 'flagged', 'non_transferable'],
      ['paused', 'flagged', 'pausable'],
      ['iced', 'flagged', 'frozen_by_default'],
      ['whale', 'flagged', 'holders_concentrated'],
    ],
  )
  assert.equal(results[3]!.transfer_tax, 0.05)
})

test('money and the reviewed tokens pass without a simulation, in any spelling', async () => {
  const usdc = '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913'
  const native = '0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE'
  const { all_passed, results } = await check(base, usdc, usdc.toUpperCase().replace('0X', '0x'), native)
  assert.equal(all_passed, true)
  assert.deepEqual(
    results.map((each) => [each.token_address, each.status, codesOf(each).join(), each.simulated_at_block]),
    [
      [usdc, 'passed', 'listed', null],
      [native, 'passed', 'listed', null],
    ],
  )
  assert.equal((await one('solana', 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v')).chain_id, solana)
})

test('no contract, no mint and an unknown chain are not allowed', async () => {
  assert.deepEqual(shown(await one(base, `0x${'12'.repeat(20)}`)), {
    status: 'flagged',
    verdict: 'risky',
    allowed: false,
    codes: ['no_code'],
  })
  assert.deepEqual(codesOf(await one(solana, mint('absent'))), ['no_mint'])
  assert.deepEqual(shown(await one('56', 'anything')), {
    status: 'unsupported_chain',
    verdict: 'unknown',
    allowed: false,
    codes: ['unsupported_chain'],
  })
})

/** An instance whose requests to the nodes are changed on their way. */
const instanceWith = (change: (request: NetRequest) => NetRequest | Fault) =>
  app.instance({
    wrapNet: (net) => ({
      fetch: async (request) => {
        const changed = change(request)
        if (changed instanceof Fault) throw changed
        return net.fetch(changed)
      },
    }),
  })

type RpcCall = { method: string; params: unknown[] }
const withoutOverride = (request: NetRequest): NetRequest => {
  if (!request.body?.includes('"eth_call"')) return request
  const calls = [JSON.parse(request.body)].flat() as RpcCall[]
  const cut = calls.map((call) => ({ ...call, params: call.params.slice(0, 2) }))
  return { ...request, body: JSON.stringify(cut) }
}

test('a node that ignores the override of a simulation, or is away, makes no token safe', async () => {
  const tokens = [fair, levy].map((token_address) => ({ chain_id: base, token_address }))
  const answerOf = async (change: Parameters<typeof instanceWith>[0]) => {
    await using instance = await instanceWith(change)
    return (await instance.call('security_check', { tokens }, user)) as unknown as Answer
  }
  const ignored = await answerOf(withoutOverride)
  const away = await answerOf((request) =>
    request.url.startsWith(app.urls.evm[base]) ? new Fault('unavailable', 'Base is away') : request,
  )
  for (const { results, all_passed } of [ignored, away]) {
    assert.equal(all_passed, false)
    assert.deepEqual(
      results.map((each) => [each.status, each.allowed, codesOf(each).join()]),
      [
        ['api_unavailable', false, 'not_simulated'],
        ['api_unavailable', false, 'not_simulated'],
      ],
    )
  }
})

test('callers of one token share its check, and the next one within seconds reads its verdict', async () => {
  let probes = 0
  await using instance = await instanceWith((request) => {
    if (request.body?.includes('"eth_getStorageAt"')) probes += 1
    return request
  })
  const ask = () =>
    instance.call('security_check', { tokens: [{ chain_id: base, token_address: fair }] }, user)
  await Promise.all(Array.from({ length: 20 }, ask))
  await ask()
  assert.equal(probes, 1)
})
