import type { Protocol } from './chain/chain-terms.ts'

/** The markets that a new venue lists. Prices and ticks are in 1e-4 dollars. */
export type CatalogMarket = {
  id: string
  slug: string
  question: string
  /** The name within its event. */
  title: string
  outcomes: readonly [string, string]
  fair: number
  tick: number
  secondsDelay: number
  fee: { rate: number; exponent: number } | null
}

export type CatalogEvent = {
  id: string
  slug: string
  title: string
  category: string
  tags: readonly { id: string; label: string; slug: string }[]
  protocol: Protocol
  isNegRisk: boolean
  markets: readonly CatalogMarket[]
}

/** In shares. */
export const minimumSize = 5

const tag = (id: number, label: string) => ({
  id: String(id),
  label,
  slug: label.toLowerCase().replace(/[^a-z0-9]+/g, '-'),
})
const economy = tag(100, 'Economy')
const crypto = tag(101, 'Crypto')
const sports = tag(102, 'Sports')
const politics = tag(103, 'Politics')
const technology = tag(104, 'Tech')

type Sketch = Pick<CatalogMarket, 'slug' | 'question' | 'fair'> & Partial<CatalogMarket>

const market = (id: number, sketch: Sketch): CatalogMarket => ({
  id: String(id),
  title: '',
  outcomes: ['Yes', 'No'],
  tick: 100,
  secondsDelay: 0,
  fee: null,
  ...sketch,
})

const single = (
  id: number,
  event: Pick<CatalogEvent, 'tags' | 'protocol'>,
  sketch: Sketch,
): CatalogEvent => ({
  id: String(id),
  slug: sketch.slug,
  title: sketch.question,
  category: event.tags[0]?.label ?? '',
  isNegRisk: false,
  ...event,
  markets: [market(500_000 + id, sketch)],
})

const group = (
  id: number,
  event: Pick<CatalogEvent, 'slug' | 'title' | 'tags' | 'protocol'>,
  sketches: readonly (Sketch & { title: string })[],
): CatalogEvent => ({
  id: String(id),
  category: event.tags[0]?.label ?? '',
  isNegRisk: true,
  ...event,
  markets: sketches.map((sketch, index) => market(500_000 + id + index + 1, sketch)),
})

export const catalog: readonly CatalogEvent[] = [
  single(
    1_000,
    { tags: [economy], protocol: 'v1' },
    {
      slug: 'fed-cuts-rates-in-december',
      question: 'Will the Fed cut rates in December?',
      fair: 6_200,
    },
  ),
  single(
    1_010,
    { tags: [crypto], protocol: 'v1' },
    {
      slug: 'bitcoin-reaches-250k-this-year',
      question: 'Will Bitcoin reach $250,000 this year?',
      fair: 450,
      tick: 10,
    },
  ),
  single(
    1_020,
    { tags: [crypto], protocol: 'v1' },
    {
      slug: 'bitcoin-up-or-down-today',
      question: 'Bitcoin up or down today?',
      outcomes: ['Up', 'Down'],
      fair: 5_100,
      fee: { rate: 0.04, exponent: 1 },
    },
  ),
  single(
    1_030,
    { tags: [sports], protocol: 'v1' },
    {
      slug: 'harbor-city-vs-river-town',
      question: 'Harbor City vs. River Town',
      outcomes: ['Harbor City', 'River Town'],
      fair: 5_500,
      secondsDelay: 3,
    },
  ),
  group(
    1_040,
    {
      slug: 'who-wins-the-mayoral-race',
      title: 'Who wins the mayoral race?',
      tags: [politics],
      protocol: 'v1',
    },
    [
      {
        slug: 'ada-winter-wins-the-mayoral-race',
        question: 'Will Ada Winter win the mayoral race?',
        title: 'Ada Winter',
        fair: 4_600,
      },
      {
        slug: 'ben-summer-wins-the-mayoral-race',
        question: 'Will Ben Summer win the mayoral race?',
        title: 'Ben Summer',
        fair: 3_500,
      },
      {
        slug: 'cal-autumn-wins-the-mayoral-race',
        question: 'Will Cal Autumn win the mayoral race?',
        title: 'Cal Autumn',
        fair: 1_900,
      },
    ],
  ),
  single(
    1_050,
    { tags: [technology], protocol: 'v2' },
    {
      slug: 'new-phone-before-march',
      question: 'Will a new phone be announced before March?',
      fair: 7_300,
    },
  ),
  single(
    1_060,
    { tags: [economy], protocol: 'v2' },
    {
      slug: 'recession-declared-next-year',
      question: 'Will a recession be declared next year?',
      fair: 1_250,
      tick: 10,
    },
  ),
  group(
    1_070,
    {
      slug: 'largest-company-at-year-end',
      title: 'Largest company at the end of the year?',
      tags: [technology, economy],
      protocol: 'v2',
    },
    [
      {
        slug: 'alpha-is-the-largest-company',
        question: 'Will Alpha be the largest company?',
        title: 'Alpha',
        fair: 5_600,
      },
      {
        slug: 'beta-is-the-largest-company',
        question: 'Will Beta be the largest company?',
        title: 'Beta',
        fair: 3_100,
      },
      {
        slug: 'gamma-is-the-largest-company',
        question: 'Will Gamma be the largest company?',
        title: 'Gamma',
        fair: 1_300,
        tick: 10,
        secondsDelay: 3,
      },
    ],
  ),
]
