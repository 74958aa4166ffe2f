import { mutationsOf } from './mutation.ts'

/** Payments for credits: prices, amounts, the rules of custody, and what is credited. */
export const creditMutations = [
  ...mutationsOf(
    'src/features/credits/native-amount.ts',
    ['src/features/credits/native-amount.test.ts'],
    [
      ['(high - low) * 100n > low', '(high - low) * 10n > low', 'two prices ten percent apart are trusted'],
      ["'up')", "'down')", 'a pack costs a unit less than its price'],
      ['? [a, b, other] : [b, a, one]', '? [a, b, one] : [b, a, other]', 'the lower price counts'],
    ],
  ),
  ...mutationsOf(
    'src/features/credits/payment-verdict.ts',
    ['src/features/credits/payment-verdict.test.ts'],
    [
      [
        "!== task.account.toLowerCase()) return 'other_payer'",
        "=== '') return 'other_payer'",
        'a payment of another account waits for the task of a user',
      ],
      [
        "if (payment.amountUnits !== task.amountUnits) return 'other_amount'",
        '',
        'a payment of another amount is not reported',
      ],
      ["? 'credited' : 'task_ended'", "? 'task_ended' : 'credited'", 'a second payment counts as credited'],
    ],
  ),
  ...mutationsOf(
    'src/engines/custody/credit-payment-rules.ts',
    ['test/identity/payment-rules.test.ts'],
    [
      [
        'till !== undefined && isSameAddress(read.till, till.address)',
        'till !== undefined',
        'a payment goes to any contract',
      ],
      ['intent.batch.calls.length === 1', 'intent.batch.calls.length > 0', 'a batch pays several times'],
      ['read.taskId === intent.taskId', "read.taskId !== ''", 'a payment names the task of another'],
      ['spend.amountUnits === read.valueUnits', 'spend.amountUnits > 0n', 'more is paid than declared'],
      ['read.valueUnits <= till.maxUnits', 'read.valueUnits > 0n', 'a payment exceeds the cap of custody'],
    ],
  ),
  ...mutationsOf(
    'src/features/credits/recharge.ts',
    ['test/journeys/recharge.test.ts', 'test/chains/recharge-reorg.test.ts'],
    [
      [
        'credits: BigInt(data.credits),',
        'credits: BigInt(data.credits) + 1n,',
        'a pack gives one credit too many',
      ],
      [
        'if (freeUnits >= requiredUnits) return { totalUnits, version }',
        'if (totalUnits > 0n) return { totalUnits, version }',
        'a payment is accepted without the coins for it',
      ],
    ],
  ),
  ...mutationsOf(
    'src/engines/custody/svm-rules.ts',
    ['test/identity/svm-rules.test.ts'],
    [
      [
        'memos.length === 1 && memos[0] === intent.taskId',
        'memos.length === 1',
        'a payment in SOL names the task of another',
      ],
      [
        'others.length === 0 && payment.token === native',
        'others.length >= 0',
        'a payment in SOL is not alone in its message, or pays with a token',
      ],
      ['payment.amountUnits === listedUnits', 'listedUnits > 0n', 'less SOL is paid than declared'],
      [
        'payment.amountUnits <= till.maxUnits',
        'payment.amountUnits > 0n',
        'a payment in SOL exceeds the cap of custody',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/credits/svm-payment.ts',
    ['test/journeys/recharge.test.ts'],
    [
      [
        'lamportDeltas.get(data.till) === amountUnits',
        'lamportDeltas.get(data.till) === 0n',
        'a payment in SOL that arrived is not credited',
      ],
    ],
  ),
  ...mutationsOf(
    'src/upstreams/solana/incoming-transfers.ts',
    ['src/upstreams/solana/incoming-transfers.test.ts'],
    [
      ['if (landed.failure !== undefined) return []', '', 'a failed transaction counts as a payment'],
      [
        'payers.length === 1 ? payers[0] : undefined',
        'undefined',
        'the sponsor counts as the payer of each payment in SOL',
      ],
      [
        'each.owner === wallet && each.mint === token',
        'each.mint === token',
        'tokens of others count as paid to the wallet',
      ],
      ['slot < fromSlot)) break', 'slot >= fromSlot)) break', 'older payments of a long history are lost'],
      [
        'since: fromSlot > 0n ? fromSlot : undefined',
        'since: undefined',
        'payments that a node has thrown away count as searched',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/credits/operator-end.ts',
    ['test/durable/operator-ends-by-kind.test.ts'],
    [
      [
        'moves: [...(ending.moves ?? []), credits],',
        'moves: ending.moves ?? [],',
        'a purchase that an operator calls paid brings no credits',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/credits/payment-search.ts',
    ['test/journeys/recharge-strays.test.ts'],
    [
      [
        "if (index > 0) return { ...facts, taskId: null, state: 'stray', reason: 'token' }",
        '',
        'tokens sent to the wallet on Solana count as a payment in SOL',
      ],
      [
        "reason: isZero ? 'no_task' : 'unknown_task'",
        "reason: 'unknown_task'",
        'a transfer without a call is reported with another cause',
      ],
      ['.filter(isListed)', '.filter(() => false)', 'tokens sent to the contract are lost'],
    ],
  ),
]
