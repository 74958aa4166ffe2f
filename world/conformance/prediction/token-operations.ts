/** Random operations on conditional tokens: most are valid, some are just beside it. */
import { encodeFunctionData, type Hex, numberToHex, parseAbi, zeroHash } from 'viem'
import type { Address } from '#world/polymarket/chain/chain-terms.ts'
import { conditionIdOf } from '#world/polymarket/chain/ids.ts'
import { nextInteger, nextRandom, type RandomState } from '#world/venue-core/random.ts'

export const tokenAbi = parseAbi([
  'function prepareCondition(address oracle, bytes32 questionId, uint256 outcomeSlotCount)',
  'function reportPayouts(bytes32 questionId, uint256[] payouts)',
  'function splitPosition(address collateralToken, bytes32 parentCollectionId, bytes32 conditionId, uint256[] partition, uint256 amount)',
  'function mergePositions(address collateralToken, bytes32 parentCollectionId, bytes32 conditionId, uint256[] partition, uint256 amount)',
  'function redeemPositions(address collateralToken, bytes32 parentCollectionId, bytes32 conditionId, uint256[] indexSets)',
  'function safeTransferFrom(address from, address to, uint256 id, uint256 value, bytes data)',
  'function safeBatchTransferFrom(address from, address to, uint256[] ids, uint256[] values, bytes data)',
  'function setApprovalForAll(address operator, bool approved)',
  'function balanceOf(address owner, uint256 id) view returns (uint256)',
  'function payoutDenominator(bytes32 conditionId) view returns (uint256)',
  'function getOutcomeSlotCount(bytes32 conditionId) view returns (uint256)',
  'function getConditionId(address oracle, bytes32 questionId, uint256 outcomeSlotCount) view returns (bytes32)',
  'function getCollectionId(bytes32 parentCollectionId, bytes32 conditionId, uint256 indexSet) view returns (bytes32)',
  'function getPositionId(address collateralToken, bytes32 collectionId) view returns (uint256)',
])

type Condition = { id: Hex; oracle: number; questionId: Hex; outcomes: number }
type Split = { actor: number; parent: Hex; condition: Condition; partition: bigint[] }
/** A collection that splits may go on from, how deep it is, and who may hold its position. */
export type Collection = { id: Hex; depth: number; actor: number }
export type Operation = { kind: string; actor: number; data: Hex }

const outcomeCounts = [2, 2, 2, 3, 4, 7, 256]
const splitsMax = 400

/** One after the other, each as likely as its weight. */
const weights = [
  ['split', 36],
  ['merge', 24],
  ['redeem', 14],
  ['transfer', 10],
  ['transferBatch', 4],
  ['approve', 3],
  ['report', 5],
  ['prepare', 4],
] as const
type Kind = (typeof weights)[number][0]

export const createOperations = (
  random: RandomState,
  {
    actors,
    recipients,
    collateral,
  }: { actors: readonly Address[]; recipients: readonly Address[]; collateral: Address },
) => {
  const pick = <T>(list: readonly T[]): T => list[nextInteger(random, list.length)] as T
  const chance = (share: number) => nextRandom(random) < share
  const conditions: Condition[] = []
  const splits: Split[] = []
  const collections: Collection[] = [{ id: zeroHash, depth: 0, actor: 0 }]
  const positions: { id: bigint; actor: number }[] = [{ id: 1n, actor: 0 }]

  const root = collections[0] as Collection

  const addCondition = (): Condition => {
    const oracle = nextInteger(random, actors.length)
    const questionId = numberToHex(conditions.length + 1, { size: 32 })
    const outcomes = pick(outcomeCounts)
    const id = conditionIdOf(actors[oracle] as Address, questionId, outcomes)
    const condition = { id, oracle, questionId, outcomes }
    conditions.push(condition)
    return condition
  }

  /** Outcomes dealt to some parts; now and then an outcome is left out, or the parts are not a partition. */
  const randomPartition = ({ outcomes }: Condition): bigint[] => {
    const parts = Array.from({ length: 2 + nextInteger(random, Math.min(outcomes, 4) - 1) }, () => 0n)
    const missing = chance(0.2) ? nextInteger(random, outcomes) : -1
    for (let outcome = 0; outcome < outcomes; outcome++)
      if (outcome !== missing) parts[nextInteger(random, parts.length)]! |= 1n << BigInt(outcome)
    if (chance(0.03)) parts.push(pick(parts))
    if (chance(0.02)) parts.push((1n << BigInt(outcomes)) - 1n)
    if (chance(0.02)) parts.pop()
    return chance(0.04) ? parts : parts.filter((part) => part > 0n)
  }

  const amountOf = (parent: Hex) => BigInt(nextInteger(random, parent === zeroHash ? 1_000_000 : 5_000))

  const splitOrMerge = (kind: 'split' | 'merge'): Operation => {
    const isRepeated = splits.length > 0 && chance(kind === 'merge' ? 0.85 : 0.3)
    const condition = pick(conditions.slice(-12))
    const { id: parent, actor: holder } = pick(collections.length > 1 && chance(0.25) ? collections : [root])
    const actor = parent === zeroHash || chance(0.1) ? nextInteger(random, actors.length) : holder
    const fresh = { actor, parent, condition, partition: randomPartition(condition) }
    const one: Split = isRepeated ? pick(splits) : fresh
    if (kind === 'split' && !isRepeated && splits.push(one) > splitsMax) splits.shift()
    const functionName = kind === 'split' ? 'splitPosition' : 'mergePositions'
    const amount = amountOf(one.parent) / (kind === 'split' ? 1n : 8n)
    const args = [collateral, one.parent, one.condition.id, one.partition, amount] as const
    return { kind, actor: one.actor, data: encodeFunctionData({ abi: tokenAbi, functionName, args }) }
  }

  const redeem = (): Operation => {
    // Older conditions have been reported.
    const one = pick(chance(0.8) ? splits.slice(0, Math.ceil(splits.length / 2)) : splits)
    const sets = chance(0.8) ? one.partition : randomPartition(one.condition)
    const args = [collateral, one.parent, one.condition.id, sets] as const
    const data = encodeFunctionData({ abi: tokenAbi, functionName: 'redeemPositions', args })
    return { kind: 'redeem', actor: one.actor, data }
  }

  const report = (): Operation => {
    const { oracle, questionId, outcomes } = pick(conditions.slice(-16, -4).concat(conditions.slice(0, 1)))
    const count = chance(0.05) ? outcomes - 1 : outcomes
    const payouts = Array.from({ length: count }, () =>
      chance(0.5) ? 0n : BigInt(nextInteger(random, 1_000)),
    )
    const data = encodeFunctionData({
      abi: tokenAbi,
      functionName: 'reportPayouts',
      args: [questionId, payouts],
    })
    return { kind: 'report', actor: chance(0.9) ? oracle : nextInteger(random, actors.length), data }
  }

  const prepare = (): Operation => {
    const { oracle, questionId, outcomes } =
      conditions.length === 0 || chance(0.85) ? addCondition() : pick(conditions)
    const count = chance(0.1) ? pick([0, 1, 257]) : outcomes
    const args = [actors[oracle] as Address, questionId, BigInt(count)] as const
    const data = encodeFunctionData({ abi: tokenAbi, functionName: 'prepareCondition', args })
    return { kind: 'prepare', actor: oracle, data }
  }

  const transfer = (kind: 'transfer' | 'transferBatch'): Operation => {
    const held = pick(positions)
    const actor = chance(0.8) ? held.actor : nextInteger(random, actors.length)
    const from = chance(0.8) ? (actors[actor] as Address) : pick(actors)
    const to = chance(0.8) ? pick(actors) : pick(recipients)
    const ofActor = positions.filter((each) => each.actor === held.actor)
    const others = Array.from(
      { length: nextInteger(random, 3) },
      () => pick(chance(0.8) ? ofActor : positions).id,
    )
    const ids = kind === 'transfer' ? [held.id] : [held.id, ...others]
    const values = ids.map(() => BigInt(nextInteger(random, chance(0.7) ? 50 : 100_000)))
    if (kind === 'transferBatch' && chance(0.1)) values.pop()
    const data =
      kind === 'transfer'
        ? encodeFunctionData({
            abi: tokenAbi,
            functionName: 'safeTransferFrom',
            args: [from, to, ids[0] as bigint, values[0] as bigint, '0x'],
          })
        : encodeFunctionData({
            abi: tokenAbi,
            functionName: 'safeBatchTransferFrom',
            args: [from, to, ids, values, '0x'],
          })
    return { kind, actor, data }
  }

  const approve = (): Operation => {
    const args = [pick(actors), chance(0.7)] as const
    const data = encodeFunctionData({ abi: tokenAbi, functionName: 'setApprovalForAll', args })
    return { kind: 'approve', actor: nextInteger(random, actors.length), data }
  }

  const kindOf = (): Kind => {
    let rest = nextInteger(
      random,
      weights.reduce((sum, [, weight]) => sum + weight, 0),
    )
    for (const [kind, weight] of weights) {
      rest -= weight
      if (rest < 0) return kind
    }
    return 'split'
  }

  const next = (): Operation => {
    const kind = conditions.length < 6 || splits.length === 0 ? (chance(0.5) ? 'prepare' : 'split') : kindOf()
    if (conditions.length === 0 || kind === 'prepare') return prepare()
    if (kind === 'split' || kind === 'merge') return splitOrMerge(kind)
    if (kind === 'redeem') return redeem()
    if (kind === 'report') return report()
    return kind === 'approve' ? approve() : transfer(kind)
  }

  /** A set of a condition below a collection, for the ids that both contracts compute. */
  const nextCollection = () => {
    const parent = chance(0.6) || collections.length < 3 ? root : pick(collections)
    const split = splits.length === 0 ? undefined : pick(splits)
    const partition = split?.partition.length ? split.partition : [1n]
    return {
      parent: split?.parent === zeroHash && chance(0.5) ? root : parent,
      conditionId: (split?.condition ?? (conditions[0] as Condition)).id,
      indexSet: pick(partition),
      actor: split?.actor ?? 0,
    }
  }

  return {
    next,
    nextCollection,
    addCollection: (collection: Collection) => collection.depth < 3 && collections.push(collection),
    addPosition: (id: bigint, actor: number) => positions.push({ id, actor }),
    positions,
    conditions,
  }
}
