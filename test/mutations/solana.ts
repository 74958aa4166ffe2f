import { mutationsOf } from './mutation.ts'

/** Transactions on Solana: what custody and the sponsor sign, when bytes are dead, and what is paid. */
export const solanaMutations = [
  ...mutationsOf(
    'src/engines/custody/svm-rules.ts',
    ['test/identity/svm-rules.test.ts'],
    [
      [
        'assertRule(message.signers.join() === signers,',
        'assertRule(message.signers.includes(own),',
        'the user signs beside a stranger',
      ],
      [
        'assertRule(decoded.to === intent.feePayer,',
        'assertRule(decoded.to !== "",',
        'the rent of a closed account goes to its owner, or to a stranger',
      ],
      [
        'assertRule(decoded.payer === intent.feePayer,',
        'assertRule(decoded.payer !== "",',
        'the user pays the rent that the sponsor owes',
      ],
      [
        'assertRule(intent.recipients.includes(to),',
        'assertRule(to.length > 0,',
        'tokens go to any recipient on Solana',
      ],
      [
        '(sums.get(key)?.amountUnits ?? 0n) + amountUnits',
        'amountUnits',
        'two transfers on Solana are each compared with the whole spend',
      ],
      [
        'assertRule(max === null || units <= max,',
        'assertRule(max === null || units >= 0n,',
        'a message on Solana exceeds the cap per signature',
      ],
      [
        'units * price <= maxPriorityLamports * microLamports',
        'units <= computeUnitsMax',
        'a priority fee drains the sponsor',
      ],
      [
        "assertRule(chain.programs.includes(programId), 'program',",
        "assertRule(programId.length > 0, 'program',",
        'custody signs instructions that it cannot decode',
      ],
    ],
  ),
  ...mutationsOf(
    'src/engines/custody/svm-rules.ts',
    ['test/identity/svm-deposit-rules.test.ts'],
    [
      [
        'assertRule(depository?.program === program,',
        'assertRule(depository !== undefined,',
        'custody signs a deposit at a program of any chain table',
      ],
      [
        'assertRule(depository.vault === vault,',
        'assertRule(vault.length > 0,',
        'custody signs a deposit into any vault',
      ],
      [
        'assertRule(depositor === own,',
        'assertRule(depositor.length > 0,',
        'a deposit of the user counts for a stranger, to whom it is refunded',
      ],
      [
        'assertRule(vaultAccount === accountOf(vault),',
        'assertRule(vaultAccount.length > 0,',
        'the tokens of a deposit go to any account',
      ],
      [
        'return { token: mint, amountUnits, to: vault }',
        'return { token: mint, amountUnits: 1n, to: vault }',
        'the amount of a deposit on Solana has no bound',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/swap/route/svm-route-checks.ts',
    ['test/identity/svm-deposits.test.ts'],
    [
      [
        "assert(others.length === 0, 'an instruction beside the deposit')",
        "assert(others.length >= 0, 'an instruction beside the deposit')",
        'an instruction beside a deposit on Solana is dropped in silence',
      ],
      [
        'read.depositId.toLowerCase() === route.depositId.toLowerCase()',
        'read.depositId.length === route.depositId.length',
        'a deposit on Solana pays for the order of somebody else',
      ],
      [
        "assert(read.amountUnits === route.amountInUnits, 'a deposit of another amount')",
        "assert(read.amountUnits >= route.amountInUnits, 'a deposit of another amount')",
        'a deposit on Solana of a unit more than the order passes',
      ],
      [
        'read.sender === account && read.depositor === account',
        'read.sender === account',
        'a quote credits a deposit on Solana to a stranger',
      ],
      [
        'read.state === state && read.vault === vault',
        'read.state === state',
        'a quote names another vault on Solana',
      ],
      [
        'lookupTables: [],',
        'lookupTables: steps.lookupTables,',
        'the lookup table of a quote is used for a deposit',
      ],
    ],
  ),
  ...mutationsOf(
    'src/upstreams/solana/instruction-decoder.ts',
    ['test/identity/svm-deposits.test.ts', 'test/identity/svm-deposit-rules.test.ts'],
    [
      [
        'return tag === depositNativeTag && system === systemProgram',
        'return system === systemProgram',
        'any instruction of the depository counts as a deposit',
      ],
      [
        'return [state, sender, depositor, vault, ...ofToken]',
        'return [sender]',
        'a deposit takes its vault from a lookup table',
      ],
    ],
  ),
  ...mutationsOf(
    'src/upstreams/relay/quote.ts',
    ['test/identity/svm-deposits.test.ts', 'src/upstreams/relay/quote.test.ts'],
    [
      [
        "if (settledBy === 'status') assertPayment(answer.protocol, reading)",
        '',
        'a deposit is made for an order of another payment',
      ],
    ],
  ),
  ...mutationsOf(
    'src/upstreams/solana/fee-payer-rule.ts',
    ['test/identity/svm-rules.test.ts'],
    [
      [
        "if (named > 1 || !(isReceiver || isRent)) return 'an instruction names the fee payer'",
        '',
        'an instruction takes SOL from the sponsor',
      ],
    ],
  ),
  ...mutationsOf(
    'src/upstreams/solana/instruction-decoder.ts',
    ['src/upstreams/solana/message.test.ts'],
    [
      [
        "return checkedAddresses(decoded).includes('') ? undefined : decoded",
        'return decoded',
        'an account of a lookup table counts as one that custody has checked',
      ],
    ],
  ),
  ...mutationsOf(
    'src/upstreams/solana/simulation-check.ts',
    ['src/upstreams/solana/simulation-check.test.ts'],
    [
      [
        'paidBy(feePayer) + baselineFeeLamports > feeLamports + rentLamports',
        'paidBy(feePayer) + baselineFeeLamports > feeLamports * 2n + rentLamports',
        'a simulated drain of the sponsor passes',
      ],
      [
        'return found?.owner === owner ? found : undefined',
        'return found',
        'an account whose owner changes counts as one that the user keeps',
      ],
    ],
  ),
  ...mutationsOf(
    'src/upstreams/solana/transaction-draft.ts',
    ['src/upstreams/solana/transaction-draft.test.ts'],
    [
      [
        'computeLimit(baselineUnits, watched)',
        'computeLimit(baselineUnits)',
        'a baseline on Solana does not name the accounts that are asked for',
      ],
    ],
  ),
  ...mutationsOf(
    'src/upstreams/solana/wire.ts',
    ['src/upstreams/solana/wire.test.ts'],
    [
      [
        'if (lamports === 0n) return undefined',
        'if (lamports < 0n) return undefined',
        'an empty account of a simulation exists, and the rent of a new one is not counted',
      ],
    ],
  ),
  ...mutationsOf(
    'src/engines/svm-transaction/expiry.ts',
    ['src/engines/svm-transaction/expiry.test.ts'],
    [
      [
        'final.height <= lastValid + marginBlocks',
        'final.height <= lastValid',
        'a transaction counts as dead without a margin',
      ],
      [' || seenSlot < final.slot', '', 'the word of a node that lags counts as absence'],
      [
        'if (earlier?.signature !== signature) return { absence }',
        'if (earlier === undefined) return { absence }',
        'the absence of an earlier signature counts for the next one',
      ],
      [
        'if (!isApart) return { absence: earlier }',
        '',
        'two looks in one moment prove that a transaction is dead',
      ],
      [
        'if (!isDeepStrictEqual(held, before) &&',
        'if (held.length === 0 &&',
        'a deposit whose record the nodes have lost is signed again',
      ],
    ],
  ),
  ...mutationsOf(
    'src/engines/svm-transaction/other-wallet-changes.ts',
    ['src/engines/svm-transaction/expiry.test.ts'],
    [
      [
        'differences.every(({ isWithout }) => isWithout) && ',
        '',
        'a change that nothing explains proves that a transaction is dead',
      ],
      [
        ' && differences.some(({ isWith }) => !isWith)',
        '',
        'a deposit is signed again because an earlier one took as much',
      ],
    ],
  ),
  ...mutationsOf(
    'src/engines/svm-transaction/transaction.ts',
    ['test/chains/svm-transaction.test.ts'],
    [
      [
        '    validUntil: later(clock.now(), validForMs),\n',
        '',
        'an operator calls a transaction not executed that can still land',
      ],
      [
        'deps.random.bytes(16)',
        'new Uint8Array(16)',
        'equal orders that are signed with their acceptance have the same bytes',
      ],
    ],
  ),
  ...mutationsOf(
    'src/engines/svm-transaction/confirm.ts',
    ['test/chains/svm-transaction.test.ts'],
    [
      [
        'if (landing.failure !== undefined) return ofTask(failedResult(context, landing))\n',
        '',
        'a transaction that failed in its block counts as executed',
      ],
    ],
  ),
  ...mutationsOf(
    'src/upstreams/solana/landed-balance-changes.ts',
    ['test/chains/svm-transaction.test.ts'],
    [
      [
        'const sponsorLamports = -lamportsDelta(0)',
        'const sponsorLamports = landed.feeLamports',
        'the rent of token accounts does not count against the budget',
      ],
    ],
  ),
]
