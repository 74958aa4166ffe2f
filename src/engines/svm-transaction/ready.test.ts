import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '#kernel/contract/fault.ts'
import { createSvmTransactions } from './transaction.ts'

test('no transaction is ready on a chain whose money is on hold', async () => {
  const held = new Set(['solana'])
  const sponsor = { ready: async () => undefined }
  const transactions = createSvmTransactions({
    ports: new Map([['solana', { sponsor }]]),
    assertFree: (chainId: string) => {
      if (held.has(chainId)) throw new Fault('unavailable', 'Money is on hold')
    },
  } as unknown as Parameters<typeof createSvmTransactions>[0])
  await assert.rejects(transactions.ready('solana'), { code: 'unavailable' })
  held.clear()
  await transactions.ready('solana')
})
