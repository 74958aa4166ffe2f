import assert from 'node:assert/strict'
import { test } from 'node:test'
import { base58 } from './base58.ts'
import { accountKeysOf, transactionBytesMax } from './message.ts'
import { systemProgram } from './program-ids.ts'
import type { Solana, TrialRequest } from './solana.ts'
import { draftTransaction } from './transaction-draft.ts'

const key = (fill: number) => base58(new Uint8Array(32).fill(fill))
const [sponsor, user, program] = [1, 2, 3].map(key) as [string, string, string]
const bytesOf = (raw: string) => Buffer.from(raw, 'base64')

/** Drafts one instruction that cannot be decoded and writes to so many accounts; returns what is simulated. */
const simulated = async (accountCount: number): Promise<TrialRequest> => {
  let sent: TrialRequest | undefined
  const simulation = { slot: 1n, ok: true, reason: '', units: 1n, accounts: [] }
  const chain = {
    row: {
      displayName: 'Solana',
      native: { address: systemProgram },
      fees: { priceFloorMicroLamports: 1n, priceCapMicroLamports: 1n },
    },
    latestBlockhash: async () => ({ blockhash: key(9), lastValidBlockHeight: 9n, slot: 1n }),
    lookupTables: async () => [],
    recentPrices: async () => [],
    simulate: async (request: TrialRequest) => {
      sent = request
      return { simulation, baseline: simulation, feeLamports: 0n }
    },
  } as unknown as Solana
  const many = Array.from({ length: accountCount }, (_, at) => key(20 + at))
  const account = (address: string) => ({ address, isSigner: address === user, isWritable: true })
  const { ok } = await draftTransaction(chain, {
    account: user,
    feePayer: sponsor,
    instructions: [{ programId: program, accounts: [user, ...many].map(account), data: '' }],
    lookupTables: [],
    spends: [],
    id: 'a',
  })
  assert.ok(ok && sent)
  return sent
}

test('both simulations name every watched account: a node shows no more than a transaction names', async () => {
  for (const count of [0, 1, 27]) {
    const { raw, baselineRaw, accounts } = await simulated(count)
    assert.equal(accounts.length, count + 2)
    for (const bytes of [raw, baselineRaw].map(bytesOf)) {
      const named = new Set(accountKeysOf(bytes))
      assert.deepEqual(
        accounts.filter((address) => !named.has(address)),
        [],
      )
      assert.ok(bytes.length <= transactionBytesMax)
    }
    assert.ok(bytesOf(baselineRaw).length < bytesOf(raw).length, 'a baseline fits where its draft does')
  }
  await assert.rejects(simulated(28), { code: 'conflict' })
})
