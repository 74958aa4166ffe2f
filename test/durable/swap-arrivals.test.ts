/** A payment counts once, however many claim it at the same time. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { claimArrival, unclaimed, venuePayouts } from '#engines/chain-arrivals/claims.ts'
import { systemRandom, uuidv7 } from '#kernel/id.ts'
import type { Chain } from '#kernel/money/chains.ts'
import { query } from '#store/query.ts'
import { type TestDatabase, testDatabase } from '../harness/cluster.ts'
import { openTestCore, type TestCore } from '../harness/core.ts'

let db: TestDatabase
let core: TestCore
before(async () => {
  db = await testDatabase()
  core = await openTestCore({ databaseUrl: db.url })
})
after(async () => {
  await core?.[Symbol.asyncDispose]()
  await db?.drop()
})

const newId = () => uuidv7(new Date(), systemRandom)
const evm = (id: string) => ({ id, family: 'evm' }) as Chain
const arrival = { chain: evm('8453'), txHash: '0xAb', part: '3', account: '0xCd' }
const isFree = async ({ txHash, part, ...receiver }: typeof arrival, claimant = newId()) =>
  (await unclaimed(core.db, { ...receiver, claimant }, [{ txHash, part }])).length === 1
const claim = (claimed: typeof arrival, claimant = newId()) =>
  core.transactions
    .run((tx) => claimArrival(tx, claimed, { claimant, at: new Date() }))
    .then(
      () => 'claimed',
      (error: { code?: string }) => error.code,
    )

test('of several swaps that claim a payment at the same time one gets it', async () => {
  assert.equal(await isFree(arrival), true)
  const results = await Promise.all(Array.from({ length: 8 }, () => claim(arrival)))
  assert.deepEqual(results.toSorted(), ['claimed', ...Array.from({ length: 7 }, () => 'unavailable')])
  assert.equal(await isFree(arrival), false)
})

test('in other letters it is the same payment, to another account or on another chain it is another one', async () => {
  assert.equal(await claim({ ...arrival, txHash: '0xaB', account: '0xcD' }), 'unavailable')
  for (const other of [{ account: '0xdd' }, { chain: evm('1') }])
    assert.equal(await claim({ ...arrival, ...other }), 'claimed')
})

test('each payment of one transaction counts once', async () => {
  const [one, other] = [
    { ...arrival, txHash: '0xF0', part: '1' },
    { ...arrival, txHash: '0xF0', part: '2' },
  ]
  assert.equal(await claim(one), 'claimed')
  assert.deepEqual([await isFree(one), await isFree(other)], [false, true])
  assert.deepEqual([await claim(one), await claim(other)], ['unavailable', 'claimed'])
})

test('a sum and its parts are the same money, however many claim them at the same time', async () => {
  const whole = { ...arrival, txHash: '0xF3', part: 'native' }
  const [one, other] = [
    { ...whole, part: 'native:0' },
    { ...whole, part: 'native:1' },
  ]
  assert.deepEqual([await claim(one), await claim(whole)], ['claimed', 'unavailable'])
  assert.deepEqual([await isFree(whole), await isFree(one), await isFree(other)], [false, false, true])
  assert.equal(await claim(other), 'claimed')
  const again = { ...whole, txHash: '0xF4' }
  assert.deepEqual(
    [
      await claim(again),
      await claim({ ...again, part: 'native:1' }),
      await claim({ ...again, part: 'native2' }),
    ],
    ['claimed', 'unavailable', 'claimed'],
  )
  for (let round = 0; round < 8; round += 1) {
    const raced = { ...whole, txHash: `0xF5${round}` }
    const ends = await Promise.all([claim(raced), claim({ ...raced, part: 'native:0' })])
    assert.deepEqual(ends.toSorted(), ['claimed', 'unavailable'])
  }
})

test('a payment is the end of a swap or a payout of the venue, and one transaction can make several payouts', async () => {
  const [filled, paidOut] = [
    { ...arrival, txHash: '0xF1' },
    { ...arrival, txHash: '0xF2' },
  ]
  assert.equal(await claim(filled), 'claimed')
  assert.deepEqual(
    [await isFree(filled, venuePayouts), await claim(filled, venuePayouts)],
    [false, 'unavailable'],
  )
  assert.equal(await claim(paidOut, venuePayouts), 'claimed')
  assert.deepEqual(
    [await isFree(paidOut, venuePayouts), await claim(paidOut, venuePayouts)],
    [true, 'claimed'],
  )
  assert.deepEqual([await isFree(paidOut), await claim(paidOut)], [false, 'unavailable'])
})

test('a transaction that the gateway has signed is no payment of a provider', async () => {
  const [taskId, effectId] = [newId(), newId()]
  await query(
    core.db,
    `insert into effect (id, task_id, step, kind, external_id, intent, signed, status, policy_receipt, at)
     values ($1, $2, 'sign', 'evm_batch', 'a', '{}', '{}', 'sent', '', now())`,
    [effectId, taskId],
  )
  await query(
    core.db,
    `insert into tx_attempt (effect_id, n, raw, external_id, nonce_kind, chain, signer, nonce, status, at)
     values ($1, 0, '0x', '0x2f', 'evm', '8453', '0xee', 0, 'sent', now())`,
    [effectId],
  )
  assert.equal(await isFree({ ...arrival, txHash: '0x2F' }, taskId), false)
  assert.equal(await isFree({ ...arrival, txHash: '0x2F' }, venuePayouts), false)
})
