import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LandedTransaction } from '#upstreams/solana/solana.ts'
import { findSvmExecutions, type SvmProgress } from './find-forgotten-executions.ts'

const never = new AbortController().signal

/** A chain whose finalised heights these are, one for each look; undefined: its node is silent. */
function chainOf(finality: 'finalized' | 'confirmed', heights: (bigint | undefined)[]) {
  const asked: string[] = []
  const row = { id: '999', finality } as never
  return {
    asked,
    port: {
      sponsor: { signers: ['sponsor'] },
      chain: {
        row,
        async height(commitment: string) {
          asked.push(commitment)
          const height = commitment === 'confirmed' ? 1_000n : heights.shift()
          if (height === undefined) throw new Error('silent')
          return { height, slot: height }
        },
        async history() {
          asked.push('history')
          return []
        },
        transaction: async (): Promise<LandedTransaction | undefined> => undefined,
      },
    },
  }
}
const begin = (): SvmProgress => ({ landed: new Map() })
const sent: Parameters<typeof findSvmExecutions>[0]['sent'] = async (chain, payer) => {
  await chain.history(payer, { commitment: 'finalized', limit: 1 })
  return []
}
const find = ({ port }: ReturnType<typeof chainOf>, progress = begin()) =>
  findSvmExecutions({ sent, store: async () => {} }, port, {
    since: new Date(0),
    signal: never,
    progress,
    everyMs: 1,
  })

test('what a sponsor sent is listed once nothing of before the search can land', async () => {
  const chain = chainOf('finalized', [1_100n, 1_182n, 1_183n])
  await find(chain)
  assert.deepEqual(chain.asked, ['confirmed', 'finalized', 'finalized', 'finalized', 'history'])
})

test('a search that is repeated waits for no more than it began with', async () => {
  const [chain, progress] = [chainOf('finalized', [1_100n, undefined, 1_183n]), begin()]
  await assert.rejects(find(chain, progress), /silent/)
  await find(chain, progress)
  await find(chain, progress)
  assert.deepEqual(chain.asked, ['confirmed', 'finalized', 'finalized', 'finalized', 'history', 'history'])
})

test('a local chain executes at once what it is sent', async () => {
  const chain = chainOf('confirmed', [])
  await find(chain)
  assert.deepEqual(chain.asked, ['history'])
})
