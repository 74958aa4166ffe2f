import { everything, type MoneyHold } from '#durable/money-hold.ts'
import {
  type ChainFindings,
  type FoundExecution,
  findExecutions,
} from '#engines/evm-batch/found-executions.ts'
import type { SvmPort } from '#engines/svm-transaction/svm-port.ts'
import { repeat } from '#kernel/repeat.ts'
import { jsonText, query } from '#store/query.ts'
import { executedBatchIn, executionOf } from '#upstreams/evm/batch.ts'
import { findSent, nonceAt } from '#upstreams/evm/sent-transactions.ts'
import { sentExecutions } from '#upstreams/solana/reference.ts'
import { type Chains, usersOfAccounts } from './chains.ts'
import type { Core } from './core.ts'

/** While money is on hold one instance writes down what the chains did and the database does not know. */

const everyMs = 1_000

type ComparisonDeps = { core: Core; chains: Chains }

export function openTimeComparison({ core, chains }: ComparisonDeps) {
  const { taskEngine, log } = core
  const compareIfWanted = async () => {
    const hold = taskEngine.isOnDuty() ? taskEngine.holds.list().find(isUncompared) : undefined
    if (hold) await compareAll({ core, chains }, hold.point ?? null)
  }
  return {
    start: () =>
      repeat(compareIfWanted, {
        everyMs,
        onError: (error) => log.warn({ error }, 'the chains were not compared with the database: will retry'),
      }),
  }
}

/** Undefined: of this instance alone, which compares the nonces by itself. */
const isUncompared = ({ scope, comparedAt }: MoneyHold) => scope === everything && comparedAt === null

async function compareAll({ core, chains }: ComparisonDeps, point: Date | null): Promise<void> {
  const { db, clock, log } = core
  const deps = { db, findSent, nonceAt, batchIn: executedBatchIn, executionOf }
  const findings = await Promise.all(
    [...chains.ports.values()].map((port) => findExecutions(deps, port, point)),
  )
  const onSolana = await Promise.all(
    [...chains.svmPorts.values()].map((port) => executionsOnSolana(port, point)),
  )
  const executions = [...findings.flatMap((each) => each.executions), ...onSolana.flat()]
  await storeExecutions(core, executions)
  await query(
    db,
    `update money_hold set compared_at = $2, detail = detail || $3::jsonb where scope = $1 and compared_at is null`,
    [everything, clock.now(), jsonText(usedNonces(chains, findings))],
  )
  log.warn({ executions: executions.length }, 'the chains were compared with the database')
}

/** No nonce shows what is missing there: everything that the sponsors sent since that moment is looked at. */
async function executionsOnSolana(
  { chain, sponsor }: SvmPort,
  point: Date | null,
): Promise<FoundExecution[]> {
  if (point === null) return []
  const sent = await Promise.all(sponsor.signers.map((signer) => sentExecutions(chain, signer, point)))
  return sent.flat().map(({ signature, at, ...execution }) => ({
    ...execution,
    chainId: chain.row.id,
    txHash: signature,
    balanceChanges: [],
    executedAt: at,
  }))
}

/** What `time resume` raises the counters to. */
function usedNonces(chains: Chains, findings: readonly ChainFindings[]) {
  const ids = [...chains.ports.keys()]
  return Object.fromEntries(
    findings.flatMap(({ used }, index) =>
      Object.entries(used).map(([signer, { from, to }]) => {
        const chain = ids[index]!
        return [`${chain}:${signer}`, { chain, signer, from: String(from), to: String(to) }]
      }),
    ),
  )
}

async function storeExecutions({ db }: Core, executions: readonly FoundExecution[]): Promise<void> {
  const users = await usersOfAccounts(
    db,
    executions.map(({ account }) => account),
  )
  for (const each of executions) {
    const userId = users.get(each.account.toLowerCase())
    // An account that was made after that moment has no user here.
    if (userId === undefined) continue
    await query(
      db,
      `insert into found_execution (chain, execution_id, sequence, user_id, tx_hash, balance_changes, executed_at)
         values ($1, $2, $3, $4, $5, $6::jsonb, $7) on conflict do nothing`,
      [
        each.chainId,
        each.executionId,
        each.sequence,
        userId,
        each.txHash,
        jsonText(each.balanceChanges),
        each.executedAt,
      ],
    )
  }
}
