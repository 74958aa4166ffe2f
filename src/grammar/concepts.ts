import type { concepts } from './english/lexicon.ts'

/** The names that rules and code may use: a name that the lexicon does not define fails to compile. */
export type Concept = keyof typeof concepts
/** A clause has these kinds of values, assets and moods. */
type ValueFeature =
  | `@${'asset' | 'assets' | 'perponly' | 'spotonly' | 'spotprefer' | 'perpasset' | 'perpfirst' | 'tokenasset'}`
  | `@${'address' | 'id' | 'usd' | 'number' | 'times' | 'indicator' | 'amount' | 'price'}`
  | `@${'chain' | 'chains' | 'chainto' | 'longspan' | 'timed' | 'thought' | 'asked' | 'do'}`
  | `@${'bare' | 'only-talk' | 'word'}`
/** `^BUY` is a verb at the head of an order. */
export type Feature = Concept | ValueFeature | `^${Concept}`

type Split<
  Text extends string,
  Mark extends string,
  Found = never,
> = Text extends `${infer First}${Mark}${infer Rest}` ? Split<Rest, Mark, Found | First> : Found | Text
type Unknown<Text extends string, Known> = Exclude<Split<Split<Text, ' '>, '+'>, Known>
/** The text itself; where it holds an unknown name, a text that says which. */
type Checked<Text extends string, Known> = [Unknown<Text, Known>] extends [never]
  ? Text
  : `${Unknown<Text, Known>} is defined nowhere`

/** A rule holds where all features of one of its parts are there. */
export type Rule = readonly (readonly Feature[])[]
/** `A B+C` is A, or B and C together. */
export const any = <Text extends string>(text: Checked<Text, Feature>): Rule =>
  text.split(' ').map((part) => part.split('+') as Feature[])
export const list = <Text extends string>(text: Checked<Text, Concept>): readonly Concept[] =>
  text.split(' ') as Concept[]

export const matches = (rule: Rule, found: ReadonlySet<Feature>): boolean =>
  rule.some((part) => part.every((name) => found.has(name)))
