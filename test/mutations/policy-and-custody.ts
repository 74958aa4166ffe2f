import { mutationsOf } from './mutation.ts'

/** Policy, receipts and the rules of custody. */
export const policyMutations = [
  ...mutationsOf(
    'src/features/policy/rules.ts',
    ['src/features/policy/rules.test.ts'],
    [
      [
        'if (request.usdMicros <= remaining) return null',
        'return null',
        'the cap of the day is not enforced',
      ],
      [
        'if (request.usdMicros > perTransactionMicros) {',
        'if (request.usdMicros > perTransactionMicros * 2n) {',
        'one transaction spends twice its cap',
      ],
      ['if (paused && !request.exit && !isExempt', 'if (paused && !isExempt', 'a kill switch blocks exits'],
      [
        "scope === 'venue' && usdMicros === 0n",
        "scope === 'venue'",
        'a frozen account at the venue opens positions',
      ],
      [
        'const limits = request.exit ? platformLimits : state.limits',
        'const limits = state.limits',
        'lists that a user has shortened block exits',
      ],
      [
        '!limits.recipients.includes(chainAddressOf(chainId, each))',
        '!limits.recipients.some((place) => place.endsWith(canonicalAddress(each)))',
        'a recipient of one chain is allowed on every chain',
      ],
      [
        'perDayMicros: min(platformLimits.perDayMicros, own.perDayMicros)',
        'perDayMicros: own.perDayMicros ?? platformLimits.perDayMicros',
        "a user's own cap of the day exceeds that of the platform",
      ],
      [
        'platform.filter((each) => own.includes(each))',
        'own',
        "a user's own list allows what the platform does not",
      ],
      [
        'asked !== null && asked > max',
        'asked !== null && asked > max + 1n',
        'a limit can be widened by a unit at a time',
      ],
      [
        'limits.tokens?.includes(chainAddressOf(chainId, each)) === false',
        'limits.tokens?.includes(each) === true',
        'a token outside the list is allowed',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/policy/receipt.ts',
    ['src/features/policy/receipt.test.ts'],
    [
      [
        'isAuthentic: (receipt) => issued.has(receipt)',
        'isAuthentic: (receipt) => receipt !== undefined',
        'a copy of a receipt counts as authentic',
      ],
      [
        'Object.freeze({ ...facts })',
        '({ ...facts })',
        'a receipt can be changed into one for another intent',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/policy/store.ts',
    ['test/identity/policy.test.ts'],
    [
      [
        "(scope = 'user' and subject = $1::text)",
        "(scope = 'user' and subject = '')",
        'the kill switch of a user stops nothing',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/policy/policy.ts',
    ['test/identity/policy.test.ts'],
    [
      [
        'await enforce(tx, userId, requestOf(intent), { ...state, spentMicros })',
        'await enforce(tx, userId, intent, { ...state, spentMicros })',
        'the spends of a batch are not checked',
      ],
      [
        'const spentMicros = state.spentMicros + takenMicros - micros',
        'const spentMicros = state.spentMicros - micros',
        'the earlier reservation of a task does not count when it signs more',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/wallets/swap-rules.ts',
    ['test/identity/swap-rules.test.ts'],
    [
      ['isSameAddress(recipient, own)', 'recipient.length > 0', 'custody signs a swap for another account'],
      ['amountOutMinUnits > 0n', 'amountOutMinUnits >= 0n', 'custody signs a swap without a minimum'],
      [
        'isSameAddress(depositor, own)',
        'depositor.length > 0',
        'a refund of a deposit goes to another account',
      ],
      ['approved.size === used.size &&', '', 'an approval is left open for a contract after the swap'],
      [
        'call.value === valueUnits',
        'call.value >= valueUnits',
        'a call carries native value that nothing accounts for',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/wallets/signing-rules.ts',
    ['test/identity/signing-rules.test.ts'],
    [
      [
        'receipt.userId === intent.userId && receipt.taskId === intent.taskId',
        'receipt.taskId === intent.taskId',
        'a receipt of one user signs for another',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/wallets/signing-rules.ts',
    ['test/identity/custody.test.ts'],
    [
      [
        'assertRule(receipt.expiresAt > now,',
        'assertRule(receipt.expiresAt > new Date(0),',
        'an old receipt signs',
      ],
      [
        'receipt.intentHash === intentHash(intent)',
        'receipt.intentHash.length > 0',
        'a receipt signs another intent than its own',
      ],
      [
        'amountUnits === read.amountUnits',
        'amountUnits <= read.amountUnits',
        'an approval exceeds the intent',
      ],
      ['includesAddress(intent.recipients, read.to),', 'true,', 'a transfer goes to any recipient'],
      [
        `isSameAddress(read.receiver, own),\n        'receiver',\n        "the assets`,
        `true,\n        'receiver',\n        "the assets`,
        'assets of the vault go to another account',
      ],
      [
        '(sums.get(normalize(token)) ?? 0n) + amountUnits',
        'amountUnits',
        'several transfers of a batch are each checked against the cap alone',
      ],
      ['assertRule(call.value === 0n,', 'assertRule(call.value >= 0n,', 'a batch carries native value'],
      [
        'assertRule(read.assetsUnits <= max,',
        'assertRule(read.assetsUnits >= 0n,',
        'a deposit exceeds what the intent spends',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/wallets/venue-rules.ts',
    ['test/venue/custody.test.ts'],
    [
      ['leftMs > 0 && leftMs <= expiryMsMax', 'leftMs > 0', 'an action at the venue can land days later'],
      [
        'isSpotAsset(asset) ? isBuy : !reduceOnly',
        'isSpotAsset(asset) ? isBuy : false',
        'an order that opens a position counts as an exit',
      ],
      [
        `assertRule(opened <= usdMicros, 'notional'`,
        `assertRule(opened <= maxMicros, 'notional'`,
        'orders open more than the value declared to the policy',
      ],
      [
        `isSameAddress(action.destination, account),\n      'destination'`,
        `true,\n      'destination'`,
        "a withdrawal goes to another address than the user's own",
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/wallets/keystore.ts',
    ['test/identity/custody.test.ts'],
    [
      [
        "['wallet', user_id, kind, address, version].join('|')",
        "['wallet', kind, version].join('|')",
        "a sealed key opens in another user's row",
      ],
      ['      secret?.fill(0)\n', '', 'the key of a wallet stays in memory after its use'],
    ],
  ),
]
