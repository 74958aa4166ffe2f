import { mutationsOf } from './mutation.ts'

/** What makes a token safe. */
export const securityMutations = [
  ...mutationsOf(
    'src/kernel/money/token-security.ts',
    ['src/kernel/money/token-security.test.ts'],
    [
      ['missing + quotedUnits - 1n', 'missing', 'a tax looks smaller than it is'],
      [
        "? 'risky' : own.verdict",
        "? 'risky' : (others[0]?.verdict ?? own.verdict)",
        'a service that calls a token safe replaces the simulation that failed',
      ],
      [
        "allowed: verdict === 'safe'",
        "allowed: verdict !== 'risky'",
        'a token that nobody checked is allowed',
      ],
      ["level === 'unknown' ? -1", "level === 'unknown' ? 9", 'a service that is away flags every token'],
    ],
  ),
  ...mutationsOf(
    'src/kernel/money/token-security-reports.ts',
    ['src/features/security/token-checker.test.ts'],
    [
      ['const checksShare = 50', 'const checksShare = 100', 'checks use up the reports that trades need'],
      [
        'const traderShare = 25',
        'const traderShare = 100',
        'the trades of one user use up the reports of others',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/security/assess-trade.ts',
    ['src/features/security/assess-trade.test.ts'],
    [
      ['if (!sell.done || sellTaxBps === null)', 'if (!sell.done)', 'a sale without a quote counts as done'],
      [
        "code: 'no_pool', level: 'unknown'",
        "code: 'no_pool', level: 'low'",
        'a token without a pool is safe',
      ],
      ['const riskyTaxBps = 1_000', 'const riskyTaxBps = 10_000', 'a tax of a quarter is not flagged'],
      [
        "code: 'upgradeable',\n      level: 'high'",
        "code: 'upgradeable',\n      level: 'low'",
        'a proxy passes',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/security/token-checker.ts',
    ['src/features/security/token-checker.test.ts'],
    [
      [
        'queue.run(owner, loadOrShare, signal)',
        'cache.get(key, () => queue.run(owner, load, signal), { maxAgeMs })',
        'a check of many tokens by one user delays the trades of others',
      ],
      [
        'if (found && !isShort(found)) return found',
        'if (found) return found',
        'a user without a share of the reports keeps them from the trades of others',
      ],
      [
        'isOwn || !isShort(loaded) ? loaded',
        'isOwn || loaded ? loaded',
        'a user without a share of the reports keeps them from a trade whose turn comes while it is checked',
      ],
      ['      answered.abort()\n', '', 'checks that nobody waits for take the places of trades'],
    ],
  ),
  ...mutationsOf(
    'src/features/security/security.ts',
    ['src/features/security/token-checker.test.ts'],
    [
      [
        'owner: `trade:${userId}`',
        'owner: `trade:${userId && tokens[0]?.address}`',
        'one user who trades many tokens delays the trades of others',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/swap/route/prepare-swap.ts',
    ['test/journeys/swap.test.ts'],
    [
      [
        'if (!terms.quoteId && !isAhead) await assertHeld(deps, terms, asksPolicy)',
        'if (!terms.quoteId && !isAhead) void assertHeld(deps, terms, asksPolicy).catch(() => undefined)',
        'tokens are checked for purchases that the wallet cannot pay',
      ],
    ],
  ),
  ...mutationsOf(
    'src/kernel/async/fair-queue.ts',
    ['src/kernel/async/fair-queue.test.ts'],
    [
      [
        'if ((waiting.get(key)?.waiters.length ?? 0) >= waitingOfKeyMax) throw overloaded()',
        '',
        'one user fills the queue of security checks, and nobody else buys a token',
      ],
      [
        'giveWay(key)\n',
        'throw overloaded()\n',
        'ten users fill the queue of security checks, and nobody else buys a token',
      ],
      ['?? waitingOfKey + 1', '?? 0', 'in a full queue two users take the place of each other in turns'],
      [
        'entry[1].rank < (next',
        '0 < (next',
        'many addresses that guess passwords hold up one that comes once',
      ],
      ['jobs - rememberedJobs)', '-1)', 'addresses that are new each time hold up a person for ever'],
    ],
  ),
  ...mutationsOf(
    'src/upstreams/evm/token-probe.ts',
    ['test/chains/security.test.ts'],
    [
      [
        "  '0xc5f16f0fcc639fa48a6947836d9850f504798523bf8c9a3a87d5876cf622bcf7',\n",
        '',
        'a token behind a proxy of ERC-1822 is safe',
      ],
      ['word !== 0n) || isDiamond', 'word !== 0n)', 'a token that is a diamond is safe'],
    ],
  ),
  ...mutationsOf(
    'src/features/security/assess-mint.ts',
    ['src/features/security/assess-mint.test.ts'],
    [
      [
        'freezeAuthority === null',
        'freezeAuthority !== undefined',
        'holders can be frozen without a warning',
      ],
      [
        "code: 'unknown_extension',\n      level: 'unknown'",
        "code: 'unknown_extension',\n      level: 'low'",
        'an extension of unknown effect is safe',
      ],
      [
        "code: 'holders_unknown', level: 'unknown'",
        "code: 'holders_unknown', level: 'low'",
        'holders that are not listed count as many',
      ],
    ],
  ),
  ...mutationsOf(
    'src/upstreams/solana/mint.ts',
    ['src/upstreams/solana/mint.test.ts'],
    [
      [
        'throw broken(`a mint without',
        'return null; throw broken(`a mint without',
        'an absent field counts as no authority',
      ],
      [
        "state.accountState !== 'initialized'",
        "state.accountState === 'frozen'",
        'an account state that is absent counts as not frozen',
      ],
      ['if (hasKey(owner)) byOwner', 'byOwner', 'a pool counts as a holder'],
    ],
  ),
  ...mutationsOf(
    'src/upstreams/honeypot/wire.ts',
    ['src/upstreams/honeypot/wire.test.ts'],
    [
      ['isHoneypot !== false ||', '', 'an absent result of honeypot.is counts as no honeypot'],
      [
        'if (isHoneypot === true)',
        'if (isHoneypot === true && simulationSuccess === true)',
        'a honeypot is forgotten where the simulation failed',
      ],
    ],
  ),
  ...mutationsOf(
    'src/upstreams/rugcheck/wire.ts',
    ['src/upstreams/rugcheck/wire.test.ts'],
    [
      ['if (rugged === false) return []', 'if (!rugged) return []', 'an absent field counts as not rugged'],
      [
        "risk.level === 'warn' ? 'medium' : 'high'",
        "risk.level === 'danger' ? 'high' : 'medium'",
        'a level that is not known counts as harmless',
      ],
      ['if (body.mint !== mint)', 'if (body.mint === undefined)', 'a report about another mint counts'],
    ],
  ),
]
