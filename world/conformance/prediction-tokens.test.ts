/**
 * Our conditional tokens beside the published ones (LGPL, deployed here alone and never copied): the same random
 * operations have the same outcome, events and ids on both.
 */
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { after, before, test } from 'node:test'
import {
  concat,
  decodeAbiParameters,
  decodeFunctionResult,
  encodeFunctionData,
  type Hex,
  numberToHex,
  parseAbiParameters,
  toEventSelector,
  zeroHash,
} from 'viem'
import { erc20Abi } from '#world/polymarket/chain/abis.ts'
import { contracts } from '#world/polymarket/chain/addresses.ts'
import type { Address } from '#world/polymarket/chain/chain-terms.ts'
import { bySize, isShort, proofSeed } from '../../test/proof/support/seed.ts'
import { knownTokens } from './prediction/known-tokens.ts'
import { openNode } from './prediction/polygon.ts'
import { createOperations, type Operation, tokenAbi } from './prediction/token-operations.ts'

const operationsMax = bySize({ short: 400, full: 10_000, nightly: 40_000 })
const blockOperations = 50
const gas = numberToHex(12_000_000)

type Log = { address: Address; topics: Hex[]; data: Hex }
type Receipt = { status: Hex; logs: Log[]; transactionHash: Hex; contractAddress: Address | null }

let node: Awaited<ReturnType<typeof openNode>>
let published: Address
let actors: Address[]

const send = (from: Address, to: Address | undefined, data: Hex) => ({
  method: 'eth_sendTransaction',
  params: [{ from, ...(to && { to }), data, gas }],
})

/** One block; the receipts in the order of the calls. */
const mine = async (calls: readonly ReturnType<typeof send>[]): Promise<Receipt[]> => {
  const hashes = (await node.rpc.batch(calls)) as Hex[]
  await node.rpc.call('evm_mine')
  const receipts = (await node.rpc.call('eth_getBlockReceipts', ['latest'])) as Receipt[]
  const byHash = new Map(receipts.map((receipt) => [receipt.transactionHash, receipt]))
  return hashes.map((hash) => byHash.get(hash)!)
}

before(async () => {
  node = await openNode()
  const { rpc } = node
  const [, ...accounts] = (await rpc.call('eth_accounts')) as Address[]
  actors = accounts.slice(0, 4)
  const { bytecode } = createRequire(import.meta.url)(
    '@gnosis.pm/conditional-tokens-contracts/build/contracts/ConditionalTokens.json',
  ) as { bytecode: Hex }
  await rpc.call('evm_setBlockGasLimit', [numberToHex(10n ** 10n)])
  await rpc.call('evm_setAutomine', [false])
  const [receipt] = await mine([send(actors[0]!, undefined, bytecode)])
  published = receipt!.contractAddress as Address
  const grants = actors.flatMap((actor) => [
    encodeFunctionData({ abi: erc20Abi, functionName: 'mint', args: [actor, 10n ** 15n] }),
    ...[published, contracts.conditionalTokens].map((spender) =>
      encodeFunctionData({ abi: erc20Abi, functionName: 'approve', args: [spender, 10n ** 15n] }),
    ),
  ])
  await mine(grants.map((data, i) => send(actors[Math.floor(i / 3)]!, contracts.usdce, data)))
})

after(() => node[Symbol.asyncDispose]())

const [singleTopic, batchTopic] = [
  'TransferSingle(address,address,address,uint256,uint256)',
  'TransferBatch(address,address,address,uint256[],uint256[])',
].map(toEventSelector) as [Hex, Hex]
const bodyOfOne = parseAbiParameters('uint256[], uint256[]')

/** A batch of one is the only known difference: the base of ours emits it as a single transfer. */
const withoutBatchOfOne = ({ topics, data }: Log): { topics: Hex[]; data: Hex } => {
  if (topics[0] !== batchTopic) return { topics, data }
  const [ids, amounts] = decodeAbiParameters(bodyOfOne, data)
  if (ids.length !== 1) return { topics, data }
  const words = [ids[0]!, amounts[0]!].map((each) => numberToHex(each, { size: 32 }))
  return { topics: [singleTopic, ...topics.slice(1)], data: concat(words) }
}

/** The same on both contracts but for the contract's own address. */
const normalized = ({ logs }: Receipt, own: Address): string =>
  JSON.stringify(
    logs.map((log) => ({ address: log.address.toLowerCase(), ...withoutBatchOfOne(log) })),
  ).replaceAll(own.slice(2).toLowerCase(), 'own')

/** Mines the operations of one account on both contracts in one block, and returns the receipts in pairs. */
const runBlock = async (actor: number, operations: readonly Operation[]): Promise<[Receipt, Receipt][]> => {
  const from = actors[actor]!
  const receipts = await mine(
    operations.flatMap(({ data }) => [
      send(from, published, data),
      send(from, contracts.conditionalTokens, data),
    ]),
  )
  return operations.map((_, i) => [receipts[2 * i]!, receipts[2 * i + 1]!])
}

type View = {
  functionName: 'getCollectionId' | 'getPositionId' | 'balanceOf' | 'payoutDenominator'
  args: readonly unknown[]
}

/** What both contracts answer, which must be one answer; undefined where both refuse. */
const viewBoth = async (views: readonly View[]): Promise<(bigint | Hex | undefined)[]> => {
  const asked = views.map(({ functionName, args }) =>
    encodeFunctionData({ abi: tokenAbi, functionName, args } as never),
  )
  const answers = await Promise.all(
    [published, contracts.conditionalTokens].map(async (to) => {
      const body = asked.map((data, id) => ({
        jsonrpc: '2.0',
        id,
        method: 'eth_call',
        params: [{ to, data }, 'latest'],
      }))
      const replies = JSON.parse(await node.rpc.post(JSON.stringify(body))) as { id: number; result?: Hex }[]
      return replies.sort((a, b) => a.id - b.id).map(({ result }) => result)
    }),
  )
  assert.deepEqual(answers[1], answers[0])
  return views.map(({ functionName }, i) => {
    const data = answers[0]![i]
    return data && (decodeFunctionResult({ abi: tokenAbi, functionName, data }) as bigint | Hex)
  })
}

test('the tokens of real markets have their ids on both contracts', async () => {
  const collections = await viewBoth(
    knownTokens.map(({ conditionId, indexSet }) => ({
      functionName: 'getCollectionId',
      args: [zeroHash, conditionId, indexSet],
    })),
  )
  const ids = await viewBoth(
    knownTokens.map(({ collateral }, at) => ({
      functionName: 'getPositionId',
      args: [collateral, collections[at]],
    })),
  )
  assert.equal(ids.length, 4)
  assert.deepEqual(
    ids,
    knownTokens.map(({ id }) => id),
  )
})

test('the same operations have the same outcome, events, ids and balances on both contracts', async (t) => {
  const seed = proofSeed('conditional tokens')
  const recipients = [contracts.walletImplementation, contracts.pusd, `0x${'00'.repeat(20)}` as Address]
  const collateral = contracts.usdce
  const operations = createOperations({ at: seed }, { actors, recipients, collateral })
  const outcomes = new Map<string, [succeeded: number, refused: number]>()
  for (let done = 0; done < operationsMax; ) {
    const drawn = Array.from({ length: blockOperations }, operations.next)
    for (const [actor, own] of Map.groupBy(drawn, (each) => each.actor)) {
      const receipts = await runBlock(actor, own)
      receipts.forEach(([theirs, ours], i) => {
        const what = `operation ${done + i} of seed ${seed}: ${own[i]!.kind} ${own[i]!.data}`
        assert.equal(ours.status, theirs.status, what)
        assert.equal(normalized(ours, contracts.conditionalTokens), normalized(theirs, published), what)
        const counts = outcomes.get(own[i]!.kind) ?? [0, 0]
        counts[ours.status === '0x1' ? 0 : 1] += 1
        outcomes.set(own[i]!.kind, counts)
      })
      done += own.length
    }
    const wanted = Array.from({ length: 4 }, operations.nextCollection)
    const found = await viewBoth(
      wanted.map(({ parent, conditionId, indexSet }) => ({
        functionName: 'getCollectionId',
        args: [parent.id, conditionId, indexSet],
      })),
    )
    const ids = found.flatMap((id, i) =>
      id === undefined
        ? []
        : [{ id: id as Hex, depth: wanted[i]!.parent.depth + 1, actor: wanted[i]!.actor }],
    )
    const positions = await viewBoth(
      ids.map(({ id }) => ({ functionName: 'getPositionId', args: [collateral, id] })),
    )
    ids.forEach(operations.addCollection)
    for (const [i, id] of positions.entries()) operations.addPosition(id as bigint, ids[i]!.actor)
  }
  for (const holder of [...actors, contracts.walletImplementation])
    await viewBoth(operations.positions.map(({ id }) => ({ functionName: 'balanceOf', args: [holder, id] })))
  await viewBoth(operations.conditions.map(({ id }) => ({ functionName: 'payoutDenominator', args: [id] })))
  const held = (await node.rpc.batch(
    [published, contracts.conditionalTokens].map((owner) => ({
      method: 'eth_call',
      params: [
        {
          to: collateral,
          data: encodeFunctionData({ abi: erc20Abi, functionName: 'balanceOf', args: [owner] }),
        },
        'latest',
      ],
    })),
  )) as Hex[]
  assert.equal(held[1], held[0])
  assert.ok(BigInt(held[0]!) > 0n)
  t.diagnostic(JSON.stringify(Object.fromEntries(outcomes)))
  // Seeds that never succeed or are never refused would show nothing; a short run has few of each kind.
  const all = [...outcomes.values()]
  const [succeeded, refused] = [0, 1].map((at) => all.reduce((sum, counts) => sum + counts[at as 0 | 1], 0))
  assert.ok(succeeded! > operationsMax / 10 && refused! > operationsMax / 10, `${succeeded}, ${refused}`)
  for (const kind of ['split', 'merge', 'redeem', 'transfer', 'report', 'prepare']) {
    const [successes, refusals] = outcomes.get(kind) ?? [0, 0]
    const isShown = isShort ? successes + refusals > 0 : successes > 0 && refusals > 0
    assert.ok(isShown, `${kind}: ${successes} succeeded, ${refusals} were refused`)
  }
})
