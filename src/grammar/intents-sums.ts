import * as rows from './answer-row-filters.ts'
import { any } from './feature-rules.ts'
import { framesOf } from './intent-frame.ts'
import { step } from './step-builders.ts'

const portfolio = step('portfolio', 'portfolio_show')
const isPart = ({ by, asset, chain }: Readonly<Record<string, string>>) =>
  by === undefined && asset === undefined && chain === undefined
const rowsShownMax = 20

/** The sums of what a user has, which all come from one operation. */
export const sumFrames = framesOf({ domain: 'portfolio', effect: 'read' }, [
  {
    intent: 'portfolio',
    summary: 'What you have everywhere in one sum, by chain or by asset, and what is on its way',
    when: [
      any(
        'PORTFOLIO SUMWORD+HAVE SUMWORD+PRICE BYCHAIN+HAVE BYASSET+HAVE BYASSET+MINE BYCHAIN+MINE STABLES+HAVE STABLES+BYASSET TRANSIT EXPOSURE',
      ),
    ],
    cues: {
      PORTFOLIO: 3,
      SUMWORD: 2,
      BYCHAIN: 3,
      BYASSET: 3,
      STABLES: 2,
      TRANSIT: 4,
      EXPOSURE: 3,
      HAVE: 1,
    },
    not: any(
      'POSITION LIQUIDATION PNL CREDITS SCAM HISTORY TASK APPROVALS RECIPIENTS ADDRESS STOP TARGET NOTIFICATION SECRET PREDMKT EARNED LIMITS FUNDING',
    ),
    readers: ['grouping', 'asset', 'chain'],
    slots: ['by', 'asset', 'chain'],
    plan: [portfolio],
    answer: [
      {
        where: isPart,
        text: 'You have {/total_usd|usd} in all, as of {/as_of|time}.',
      },
      {
        where: isPart,
        rows: '/parts',
        pick: rows.valued,
        max: rowsShownMax,
        text: '{place|kind}: {value_usd|usd}[ ({share|fraction})].',
      },
      {
        where: isPart,
        rows: '/by_asset',
        pick: rows.valued,
        max: 5,
        hidesRest: true,
        text: '{symbol|text}: {value_usd|usd}[ ({share|fraction})].',
      },
      {
        where: ({ by, chain }) => by === 'chain' && chain === undefined,
        text: 'Most is on {/by_chain/0/name|text}, of {/total_usd|usd} in all.',
      },
      {
        where: ({ by, chain }) => by === 'chain' || chain !== undefined,
        rows: '/by_chain',
        pick: rows.onChain,
        max: rowsShownMax,
        text: '{name|text}: {value_usd|usd}[ ({share|fraction})].',
        none: 'You have nothing there.',
      },
      {
        where: ({ by, asset, chain }) => (by === 'asset' || asset !== undefined) && chain === undefined,
        rows: '/by_asset',
        pick: rows.ofAsset,
        max: rowsShownMax,
        text: '{symbol|text}: {value_usd|usd}[ ({share|fraction})][, {amount|amount} of it].',
        none: 'You have nothing of it.',
      },
      {
        where: ({ by }) => by === 'pending',
        rows: '/pending',
        text: '{kind|kind}: [{value_usd|usd} on its way, ]{state|words} since {created_at|time}.',
        none: 'Nothing is on its way: no task that moves money is under way.',
      },
      {
        rows: '/unread',
        text: 'Not counted: {place|words}, because it could not be read[ ({message|text})].',
      },
      {
        where: ({ by }) => by !== 'pending',
        text: '[Without a price, and so not counted: {/unpriced/0|text}][, {/unpriced/1|text}][, {/unpriced/2|text}]',
      },
    ],
    examples: ["what's my net worth", 'my money by chain', 'how is my money split between assets'],
  },
])
