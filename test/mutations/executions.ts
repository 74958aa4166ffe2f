import { mutationsOf } from './mutation.ts'

/** What chains and venues know an execution by, and the look-ups of what a database has forgotten. */
export const executionMutations = [
  ...mutationsOf(
    'src/kernel/task/execution-id.ts',
    ['src/kernel/task/execution-id.test.ts'],
    [
      [
        "['request', userId, operation, key]",
        "['request', userId, key]",
        'one key at two operations is one execution',
      ],
      [
        "executionId(perAttempt ? ['fired', armed, String(order.attempts)] : ['fired', armed])",
        "executionId(['fired', armed, String(order.attempts)])",
        'an order executes once more where the number of its attempts was forgotten',
      ],
    ],
  ),
  ...mutationsOf(
    'src/kernel/task/forgotten-execution.ts',
    ['src/kernel/task/forgotten-execution.test.ts'],
    [
      [
        ': pollSilent(polled, steps.sign, age)',
        ": { ...pollAgain(polled, steps.sign, backoff), state: 'reconciling' as const }",
        'a look-up that strangers keep from an answer is repeated every 15 seconds for ever',
      ],
    ],
  ),
  ...mutationsOf(
    'src/durable/accept/accept-task-call.ts',
    ['test/journeys/forgotten-executions.test.ts'],
    [
      [
        'asker: options.key === undefined ? asker :',
        'asker: options.key !== undefined ? asker :',
        'a request that the database has forgotten is executed again under its key',
      ],
    ],
  ),
  ...mutationsOf(
    'src/engines/svm-transaction/transaction.ts',
    ['test/journeys/forgotten-executions.test.ts'],
    [
      [
        'find(task.userId, plan, outsideId(task) && reference),',
        'own.length !== 0 ? find(task.userId, plan, outsideId(task) && reference) : undefined,',
        'a deposit on Solana that the database has forgotten is made again',
      ],
    ],
  ),
  ...mutationsOf(
    'src/engines/svm-transaction/transaction.ts',
    ['src/engines/svm-transaction/transaction.test.ts'],
    [
      [
        'find(task.userId, plan, outsideId(task) && reference),',
        'own.length === 0 ? find(task.userId, plan, outsideId(task) && reference) : undefined,',
        'a second signature that the database has forgotten is followed by a third one',
      ],
    ],
  ),
  ...mutationsOf(
    'src/engines/svm-transaction/confirm.ts',
    ['src/engines/svm-transaction/confirm.test.ts'],
    [
      [
        'if (signsAgain && outsideId(task) !== undefined)',
        'if (signsAgain && outsideId(task) === undefined)',
        'a task ends as expired although a later signature, which the database has forgotten, has paid',
      ],
    ],
  ),
  ...mutationsOf(
    'src/engines/venue/orders/venue-effect.ts',
    ['test/venue/unknown-outcome.test.ts'],
    [
      [
        'outsideId(task) === undefined || data.looked_before === key',
        'outsideId(task) !== undefined || data.looked_before === key',
        'an order that the database has forgotten is placed again',
      ],
    ],
  ),
  ...mutationsOf(
    'src/upstreams/solana/execution-reference.ts',
    ['src/upstreams/solana/execution-reference.test.ts'],
    [
      [
        'if (seen && !signersOf(seen).includes(account))',
        'if (seen && signersOf(seen).length === 0)',
        'a transaction of a stranger counts as that of the wallet',
      ],
      [
        'Number(at) <= Number(since) - blockTimeErrorMs',
        'at <= since',
        'what was sent in the second of the last moment of a database is not found',
      ],
    ],
  ),
  ...mutationsOf(
    'src/upstreams/solana/address-history.ts',
    ['src/upstreams/solana/address-history.test.ts'],
    [
      [
        'if (Number(storedFrom) > Number(since) - blockTimeErrorMs)',
        'if (!storedFrom)',
        'what a node has thrown away was never executed',
      ],
      ['if (first > slot)', 'if (!slot)', 'what a node has thrown away was never paid'],
      [
        'if (timed?.slot === slot)',
        'if (timed)',
        'a node that has thrown more away since is taken to keep it',
      ],
    ],
  ),
  ...mutationsOf(
    'src/upstreams/solana/history-pages.ts',
    ['src/upstreams/solana/execution-reference.test.ts'],
    [
      [
        'if (page[0]?.signature !== last)',
        'if (page.length > 0 && page[0]?.signature !== last)',
        'a node that does not know where to go on ends a search that has not found yet',
      ],
    ],
  ),
  ...mutationsOf(
    'src/upstreams/evm/batch-search.ts',
    ['src/upstreams/evm/batch-search.test.ts'],
    [['if (receipt?.success) return', 'if (receipt) return', 'an attempt that failed counts as the batch']],
  ),
]
