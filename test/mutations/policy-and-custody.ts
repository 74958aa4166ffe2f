import { mutationsOf } from './mutation.ts'

/** Policy, receipts and the rules of custody. */
export const policyMutations = [
  ...mutationsOf(
    'src/features/policy/rules.ts',
    ['src/features/policy/rules.test.ts'],
    [
      [
        'if (request.usdMicros <= remaining) return evaluateChatCap(request, state)',
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
        'asked !== undefined && asked > max',
        'asked !== undefined && asked > max + 1n',
        'a limit can be widened by a unit at a time',
      ],
      [
        'changes.filter(({ effectiveAt }) => effectiveAt <= now)',
        'changes.filter(({ requestedAt }) => requestedAt <= now)',
        'a raised limit does not wait',
      ],
      [
        'pending.filter((change) => !named.includes(change.field) || waitsAlready(change))',
        'pending.filter((change) => !wider.includes(change.field) || waitsAlready(change))',
        'a lowered limit is raised again by an earlier request',
      ],
      [
        "principal !== 'app' && found.agents === 'denied'",
        "principal !== 'app' && found.agents === undefined",
        'an agent sends where only people may',
      ],
      [
        'wanted.approvalAboveMicros === null || wanted.approvalAboveMicros',
        'wanted.approvalAboveMicros !== null && wanted.approvalAboveMicros',
        'an agent removes the limit above which a person is asked',
      ],
      [
        'each.chainId === chainId && canonicalAddress(each.address)',
        'canonicalAddress(each.address)',
        'a recipient of one chain receives on every chain',
      ],
      [
        'limits.tokens?.includes(chainAddressOf(chainId, each)) === false',
        'limits.tokens?.includes(each) === true',
        'a token outside the list is allowed',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/policy/operations.ts',
    ['test/identity/policy.test.ts'],
    [
      [
        'await store.savePolicy(tx, userId, { own, version: version + 1, now })',
        'await store.savePolicy(tx, userId, { own, version, now })',
        'a task admitted by a cancelled raise is accepted',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/policy/tighten.ts',
    ['test/oauth/policy-changes.test.ts'],
    [
      [
        '([field]) => !wider.includes(field as keyof rules.Limits)',
        '() => true',
        'an app raises limits without its person',
      ],
      ["assertScope(caller, 'propose')", '', 'an app that may lower asks for more'],
      ['asked === undefined || ', 'asked !== undefined || ', 'a raise brings back what was lowered since'],
    ],
  ),
  ...mutationsOf(
    'src/features/policy/kill-switch.ts',
    ['test/oauth/policy-changes.test.ts'],
    [
      [
        '  return deps.acts.requestAct(scope, act, caller)\n',
        '    await store.clearSwitch(tx, idOf(subject))\n  return deps.acts.requestAct(scope, act, caller)\n',
        'an app lifts the kill switch',
      ],
      ['if (since !== undefined && ', 'if (since === undefined && ', 'the end of a stop ends a later one'],
    ],
  ),
  ...mutationsOf(
    'src/kernel/task/fresh-sign-in.ts',
    ['src/kernel/task/fresh-sign-in.test.ts'],
    [
      [
        'if (person?.clientId !== approvalsClientId) return false',
        'if (!person) return false',
        'a token of an app approves',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/policy/approval-rules.ts',
    ['src/features/policy/approval-rules.test.ts'],
    [
      [
        "if (principal === 'person' || principal === 'gateway') return null",
        'if (principal !== undefined) return null',
        'an agent acts above the limit without an approval',
      ],
      ['countedMicros(request) <= limit', 'request.usdMicros <= limit', 'an exit waits for an approval'],
      [
        "return agents === 'approval' ||",
        "return agents === 'denied' ||",
        'an agent sends without the approval that the recipient needs',
      ],
      [
        'if (limit !== null && reservedMicros > limit) return null',
        'if (limit !== null && takenMicros > limit) return null',
        'a task that was accepted below the limit for approvals signs above it',
      ],
    ],
  ),
  ...mutationsOf(
    'src/durable/approvals/approval-store.ts',
    ['test/durable/approvals.test.ts'],
    [
      [
        'at < expiresAt && (await writeDecision',
        '(await writeDecision',
        'a request is approved after its time',
      ],
      [
        '/^(pending|running)$/.test(task.status) && !task.cancel_requested',
        '/^(pending|running)$/.test(task.status)',
        'a cancelled request is approved',
      ],
    ],
  ),
  ...mutationsOf(
    'src/durable/approvals/approvals.ts',
    ['test/durable/approvals.test.ts'],
    [
      [
        'ofOthers + 2 * ofClient >= waitingMax',
        'ofOthers + 2 * ofClient > waitingMax',
        'one request more waits than may',
      ],
      ['  await lockRequests(tx, userId)\n', '', 'requests at the same moment exceed their number'],
    ],
  ),
  ...mutationsOf(
    'src/durable/approvals/approval-step.ts',
    ['test/durable/approvals.test.ts'],
    [
      [
        "if (approval.decision === 'approved')\n    return approval.intent",
        "if (approval.decision !== 'declined')\n    return approval.intent",
        'a request runs when its time is over',
      ],
      [
        "principal: 'person' as const,",
        "principal: 'agent' as const,",
        'an approved request is not admitted',
      ],
    ],
  ),
  ...mutationsOf(
    'src/durable/approvals/approval-store.ts',
    ['test/durable/approvals.test.ts'],
    [
      [
        'where task_id = $1 and decision is null returning',
        'where task_id = $1 returning',
        'a later decision replaces the first',
      ],
    ],
  ),
  ...mutationsOf(
    'src/durable/accept/accept-approved.ts',
    ['test/durable/approvals.test.ts'],
    [
      [
        'version: version + 1, idempotency_key',
        'version: 1, idempotency_key',
        'a run of an earlier claim commits over the accepted task',
      ],
      [
        '       and not cancel_requested returning id)',
        '       returning id)',
        'an approved task that was cancelled runs',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/approvals/approvals.ts',
    ['test/journeys/approvals.test.ts'],
    [
      [
        'if (!found || (!isOwn && owner?.userId !== caller.userId))',
        'if (!found)',
        'a stranger approves what an agent asked for',
      ],
      ['owner?.linkedAt ?? null,', 'null,', 'who has just linked an agent approves its requests at once'],
    ],
  ),
  ...mutationsOf(
    'src/edges/oauth/sign-in/page-session.ts',
    ['test/oauth/approvals-page.test.ts'],
    [
      [
        'if (isRefusedOrigin(request.raw, baseUrl()) || !isProven(form, session))',
        'if (!isProven(form, session))',
        'a form of another site approves',
      ],
      [
        'if (isRefusedOrigin(request.raw, baseUrl()) || !isProven(form, session))',
        'if (isRefusedOrigin(request.raw, baseUrl()))',
        'a form without the token of the page approves',
      ],
    ],
  ),
  ...mutationsOf(
    'src/engines/custody/evm-rules.ts',
    ['test/identity/signing-rules.test.ts'],
    [
      [
        "assertRule(isListed, 'recipient', 'native coins go to a recipient of the intent')",
        '',
        'native coins go to any recipient',
      ],
      [
        'intent.operation === transferOperation && intent.batch.calls.length === 1',
        'intent.batch.calls.length === 1',
        'another operation sends native coins',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/policy/recipient-store.ts',
    ['test/journeys/transfers.test.ts'],
    [
      [
        '.filter((row) => row.effective_at <= now)',
        '.filter((row) => row.created_at <= now)',
        'money goes to a recipient that is not in effect',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/policy/recipients.ts',
    ['test/journeys/recipients.test.ts'],
    [['effective_at: later(now, coolingMs)', 'effective_at: now', 'a new recipient does not wait']],
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
        "(s.scope = 'user' and s.subject = $1::text)",
        "(s.scope = 'user' and s.subject = '')",
        'the kill switch of a user stops nothing',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/policy/policy.ts',
    ['test/identity/policy.test.ts'],
    [
      [
        'const request = { ...requestOf(intent), ...principal }',
        'const request = { ...intent, ...principal }',
        'the spends of a batch are not checked',
      ],
      [
        'const taken = takenMicros - micros',
        'const taken = -micros',
        'the earlier reservation of a task does not count when it signs more',
      ],
    ],
  ),
  ...mutationsOf(
    'src/engines/custody/swap-rules.ts',
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
    'src/engines/custody/evm-rules.ts',
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
    'src/engines/custody/evm-rules.ts',
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
    'src/engines/custody/venue-rules.ts',
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
    'src/engines/custody/keystore.ts',
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
