import { mutationsOf } from './mutation.ts'

/** A database that went back, and what it is without a standby. */
export const timeMutations = [
  ...mutationsOf(
    'src/durable/time/judge-position.ts',
    ['src/durable/time/judge-position.test.ts'],
    [
      [' || found.beat < seen.beat', '', 'a dump in the same server goes unnoticed'],
      [' || isLess(found.storedLsn, seen.lsn)', '', 'a standby that lagged goes on'],
      [
        "return found.isEmpty ? go : { verdict: 'check', reason: 'no_memory' }",
        'return go',
        'nothing is compared',
      ],
    ],
  ),
  ...mutationsOf(
    'src/durable/time/replication.ts',
    ['src/durable/time/replication.test.ts'],
    [
      [
        "['on', 'remote_apply'].includes(synchronousCommit)",
        'true',
        'a standby that nobody waits for counts',
      ],
      ['else lostAtMs ??= nowMs()', 'else lostAtMs = nowMs()', 'new money is never refused'],
    ],
  ),
  ...mutationsOf(
    'src/durable/accept/admit-task.ts',
    ['test/durable/database-time.test.ts'],
    [
      [
        'if (movesMoney(request.kind)) deps.holds.assertFree()',
        '',
        'money on hold is admitted, and read for',
      ],
    ],
  ),
  ...mutationsOf(
    'src/durable/time/money-hold.ts',
    ['test/durable/database-time.test.ts'],
    [
      ['($6::text is null or value = $6)', 'true', 'a hold comes back after its resume'],
      [
        'greatest(value::bigint + 1, extract(epoch from clock_timestamp())::bigint)',
        '(value::bigint + 1)',
        'a backup that is restored twice goes on only after several resumes',
      ],
    ],
  ),
  ...mutationsOf(
    'src/durable/time/detect-lost-commits.ts',
    ['test/durable/database-time.test.ts'],
    [
      [
        "reason === 'no_memory' && !isFresh(state)",
        "reason === 'no_memory'",
        'an instance that is added to others holds the money of Solana and the venue',
      ],
      [
        " || (reason === 'new_timeline' && afterFailover)",
        '',
        'after a failover a repeat pays beside what an instance that died has sent on Solana',
      ],
    ],
  ),
  ...mutationsOf(
    'src/engines/svm-transaction/find-forgotten-executions.ts',
    ['src/engines/svm-transaction/find-forgotten-executions.test.ts'],
    [
      [
        '  await untilVoid(chain, range)\n',
        '',
        'a transaction on Solana that lands after the comparison is paid again by its repeat',
      ],
    ],
  ),
  ...mutationsOf(
    'src/durable/run/runner.ts',
    ['test/durable/database-time.test.ts'],
    [
      [
        '  if (runner.deps.holds.find())\n    return {',
        '  if (runner.deps.holds.find() && runner.stopping)\n    return {',
        'tasks run while money is on hold',
      ],
    ],
  ),
  ...mutationsOf(
    'src/upstreams/evm/nonce-repair-plan.ts',
    ['src/upstreams/evm/nonce-repair-plan.test.ts'],
    [['mined > counter && {', 'mined < counter && {', 'lost commits are skipped']],
  ),
  ...mutationsOf(
    'src/engines/evm-batch/unknown-nonces.ts',
    ['test/chains/batch.test.ts'],
    [
      ['if (ours.length > 0)', 'if (ours.length > 50)', 'a lost batch counts as a foreign transaction'],
      [
        "batches.filter(({ to: account }) => users.has(account?.toLowerCase() ?? ''))",
        'batches',
        'the batches of another installation hold the money of this one',
      ],
    ],
  ),
  ...mutationsOf(
    'src/admin/adopt-lost-executions.ts',
    ['test/journeys/restore-money.test.ts'],
    [['if (order) await endOrder(tx, order, task)', '', 'an adopted order stays armed']],
  ),
]
