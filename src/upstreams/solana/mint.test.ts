import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Address, isOffCurveAddress } from '@solana/kit'
import fc from 'fast-check'
import type { RpcAnswer } from '#kernel/wire/json-rpc.ts'
import { base58 } from './base58.ts'
import { inspectMint } from './mint.ts'
import { hasKey } from './program-address.ts'
import { tokenPrograms } from './program-ids.ts'

const context = { slot: 9 }
const answer = (value: unknown): RpcAnswer => ({ result: { context, value } })
const mintAccount = (info: object, owner: string = tokenPrograms[1]) =>
  answer({ owner, data: { parsed: { type: 'mint', info } } })
const plain = { mintAuthority: null, freezeAuthority: null, supply: '1000', decimals: 6 }
const none = answer([])

/** Answers in the order of the requests. */
const inspect = (first: RpcAnswer[], second: RpcAnswer[] = []) => {
  const replies = [first, second]
  return inspectMint(async () => replies.shift() ?? [], 'mint')
}
const factsOf = async (info: object) => {
  const found = await inspect([mintAccount({ ...plain, ...info }), none])
  assert.equal(found.type, 'mint')
  return found.type === 'mint' ? found.facts : assert.fail()
}

test('an absent authority is not the same as none', async () => {
  const { mintAuthority: _, ...withoutField } = plain
  await assert.rejects(inspect([mintAccount(withoutField), none]), { code: 'unavailable' })
  await assert.rejects(inspect([mintAccount({ ...plain, freezeAuthority: 7 }), none]), {
    code: 'unavailable',
  })
  assert.equal((await factsOf({})).mintAuthority, null)
})

test('an account of another program, and a token account, are no mint', async () => {
  assert.equal((await inspect([answer(null), none])).type, 'absent')
  assert.equal((await inspect([mintAccount(plain, 'another'), none])).type, 'absent')
  const account = answer({ owner: tokenPrograms[0], data: { parsed: { type: 'account', info: {} } } })
  assert.equal((await inspect([account, none])).type, 'absent')
})

test('a mint that the node cannot read is not a mint without powers', async () => {
  const bytes = answer({ owner: tokenPrograms[1], data: ['AAEC', 'base64'] })
  await assert.rejects(inspect([bytes, none]), { code: 'unavailable' })
})

test('extensions are read with their states, and an unknown one is named', async () => {
  const rate = (bps: number) => ({ transferFeeBasisPoints: bps, maximumFee: '1', epoch: '0' })
  const { extensions } = await factsOf({
    extensions: [
      {
        extension: 'transferFeeConfig',
        state: {
          olderTransferFee: rate(900),
          newerTransferFee: rate(100),
          transferFeeConfigAuthority: 'k',
        },
      },
      { extension: 'permanentDelegate', state: { delegate: 'd' } },
      { extension: 'transferHook', state: { authority: 'a', programId: null } },
      { extension: 'defaultAccountState', state: { accountState: 'frozen' } },
      { extension: 'pausableConfig', state: { authority: null, paused: true } },
      { extension: 'nonTransferable' },
      { extension: 'metadataPointer', state: {} },
      { extension: 'unparseableExtension' },
    ],
  })
  assert.deepEqual(extensions, {
    transferFee: { bps: 900, authority: 'k' },
    permanentDelegate: 'd',
    transferHook: 'a',
    isFrozenByDefault: true,
    pausable: 'nobody',
    isNonTransferable: true,
    unknown: ['unparseableExtension'],
  })
})

test('an extension without its state is not read as harmless', async () => {
  for (const extension of ['transferFeeConfig', 'permanentDelegate', 'transferHook', 'pausableConfig'])
    await assert.rejects(factsOf({ extensions: [{ extension }] }), { code: 'unavailable' }, extension)
  await assert.rejects(factsOf({ extensions: {} }), { code: 'unavailable' })
  const { extensions } = await factsOf({ extensions: [{ extension: 'defaultAccountState' }] })
  assert.equal(extensions.isFrozenByDefault, true)
})

test('holders are summed by their owner, without the addresses of programs', async () => {
  const addresses = Array.from({ length: 200 }, (_, at) => base58(Buffer.alloc(32, at + 1)))
  const person = addresses.find((each) => !isOffCurveAddress(each as Address))!
  const program = addresses.find((each) => isOffCurveAddress(each as Address))!
  const owners = [person, program, person]
  const largest = answer(
    owners.map((_, index) => ({ address: `a${index}`, amount: String(100 * (index + 1)) })),
  )
  const accounts = answer(owners.map((owner) => ({ data: { parsed: { info: { owner } } } })))
  const found = await inspect([mintAccount(plain), largest], [accounts])
  assert.ok(found.type === 'mint')
  assert.deepEqual(found.facts.largestUnits, [400n])
})

test('holders that the node does not list are unknown, not few', async () => {
  const refused: RpcAnswer = { error: { code: -32600, message: 'Too many accounts' } }
  const largest = answer([{ address: 'a', amount: '5' }])
  for (const [first, second] of [
    [refused, none],
    [answer('x'), none],
    [answer([{ address: 'a' }]), none],
    [largest, refused],
    [largest, answer([])],
    [largest, answer([{ data: ['AA', 'base64'] }])],
  ] as const) {
    const found = await inspect([mintAccount(plain), first], [second])
    assert.ok(found.type === 'mint')
    assert.equal(found.facts.largestUnits, null)
  }
})

test('the public Solana library says of the same addresses that a key can sign for them', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 32, maxLength: 32 }), (bytes) => {
      const address = base58(bytes)
      assert.equal(hasKey(address), !isOffCurveAddress(address as Address), address)
    }),
    { numRuns: 60 },
  )
})
