import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSponsorLoad } from '#engines/evm-batch/sponsor-load.ts'
import type { Evm } from '#upstreams/evm/evm.ts'
import { createSponsor, type Sponsor } from '#upstreams/evm/sponsor.ts'

const secrets = [1, 2, 3].map((last) => new Uint8Array(32).fill(last))
const ether = 10n ** 18n

type Facts = { taken?: bigint[]; balances?: bigint[]; paused?: number }

/** Three sponsors on a chain that has mined ten transactions of each. */
function createLoad({ taken = [10n, 10n, 10n], balances = [ether, ether, ether], paused }: Facts) {
  let reads = 0
  const chain: Partial<Evm> = {
    row: { id: '8453', displayName: 'Base' } as Evm['row'],
    transactionCount: async () => {
      reads += 1
      return 10n
    },
    balance: async (address) => balances[signers.indexOf(address)]!,
  }
  const sponsor: Sponsor = createSponsor({
    chain: chain as Evm,
    secrets,
    clock: { now: () => new Date(0) },
    balanceMinWei: 1n,
    isPaused: async (signer) => paused !== undefined && signer === signers[paused],
  })
  const signers = sponsor.signers
  const nextNonces = async () => new Map(signers.map((signer, index) => [signer, taken[index]!]))
  let unknown = 0
  const onUnknownNonces = async () => {
    unknown += 1
  }
  const load = createSponsorLoad({ chain: chain as Evm, sponsor, nonces: { nextNonces }, onUnknownNonces })
  const picksOf = async (count: number) => {
    const picks = [0, 0, 0]
    for (let n = 0; n < count; n++) {
      const { payer, mined } = await load.pick({ fullExit: false })
      assert.equal(mined, 10n)
      picks[signers.indexOf(payer)]! += 1
    }
    return picks
  }
  return { load, picksOf, reads: () => reads, unknown: () => unknown }
}

test('nonces that were mined above the counter are looked at before the next one is taken', async () => {
  const behind = createLoad({ taken: [10n, 9n, 10n] })
  await behind.load.pick({ fullExit: false })
  assert.equal(behind.unknown(), 1)
  const even = createLoad({})
  await even.load.pick({ fullExit: false })
  assert.equal(even.unknown(), 0)
})

test('batches are spread evenly over the sponsors, with one reading', async () => {
  const { picksOf, reads } = createLoad({})
  assert.deepEqual(await picksOf(30), [10, 10, 10])
  assert.equal(reads(), 3)
})

test('concurrent batches are spread as well', async () => {
  const { load } = createLoad({})
  const picks = await Promise.all(Array.from({ length: 9 }, () => load.pick({ fullExit: false })))
  assert.equal(new Set(picks.map(({ payer }) => payer)).size, 3)
})

test('a sponsor whose nonces wait on the chain gets nothing until the others are as busy', async () => {
  const { picksOf } = createLoad({ taken: [14n, 10n, 10n] })
  assert.deepEqual(await picksOf(8), [0, 4, 4])
  assert.deepEqual(await picksOf(3), [1, 1, 1])
})

test('a paused sponsor and an empty one are left out', async () => {
  const { picksOf } = createLoad({ paused: 1, balances: [0n, ether, ether] })
  assert.deepEqual(await picksOf(4), [0, 0, 4])
})

test('a nonce that was used unseen causes a new reading', async () => {
  const { load, picksOf, reads } = createLoad({})
  await picksOf(1)
  load.invalidate()
  await picksOf(1)
  assert.equal(reads(), 6)
})
