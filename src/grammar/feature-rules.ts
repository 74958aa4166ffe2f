import type { concepts } from './english/lexicon.ts'

/** The names of concepts that rules and code may use: a name that the lexicon does not define fails to compile. */
export type Concept = keyof typeof concepts
/** Features of a clause that are no words: its values, assets, chains and mood. */
type ValueFeature =
  | `@${'asset' | 'assets' | 'perponly' | 'spotonly' | 'spotprefer' | 'perpasset' | 'perpfirst' | 'tokenasset'}`
  | `@${'address' | 'id' | 'usd' | 'number' | 'times' | 'indicator' | 'amount' | 'worth' | 'price'}`
  | `@${'chain' | 'chains' | 'chainto' | 'longspan' | 'window' | 'timed' | 'thought' | 'asked' | 'do'}`
  | `@${'bare' | 'only-talk' | 'word' | 'stranger'}`
/** A feature of a clause: `^BUY` is the verb at the head of an order, and `BUY` is the word anywhere. */
export type Feature = Concept | ValueFeature | `^${Concept}`

type Split<
  Text extends string,
  Mark extends string,
  Found = never,
> = Text extends `${infer First}${Mark}${infer Rest}` ? Split<Rest, Mark, Found | First> : Found | Text
type Unknown<Text extends string, Known> = Exclude<Split<Split<Text, ' '>, '+'>, Known>
/**
 * The type of a rule's text. If the text contains an unknown name, the type is an error message with this name instead,
 * so that the rule does not compile.
 */
type Checked<Text extends string, Known> = [Unknown<Text, Known>] extends [never]
  ? Text
  : `${Unknown<Text, Known>} is defined nowhere`

/** A rule is a list of parts, and holds if all features of one part are present in the clause. */
export type Rule = readonly (readonly Feature[])[]
/** Parses a rule from text: `A B+C` means A, or B and C together. */
export const any = <Text extends string>(text: Checked<Text, Feature>): Rule =>
  text.split(' ').map((part) => part.split('+') as Feature[])
export const list = <Text extends string>(text: Checked<Text, Concept>): readonly Concept[] =>
  text.split(' ') as Concept[]

export const matches = (rule: Rule, found: ReadonlySet<Feature>): boolean =>
  rule.some((part) => part.every((name) => found.has(name)))
