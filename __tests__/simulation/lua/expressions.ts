import type {
  CallExpression,
  Expression,
  FunctionDeclaration,
  StringCallExpression,
  TableCallExpression,
  TableConstructorExpression,
} from 'luaparse';
import type { Scopes } from './scopes';

const BINARY: Record<string, string> = {
  '+': 'add',
  '-': 'sub',
  '*': 'mul',
  '/': 'div',
  '%': 'mod',
  '^': 'pow',
  '..': 'concat',
  '<': 'lessThan',
  '<=': 'atMost',
};

type AnyCall = CallExpression | StringCallExpression | TableCallExpression;

/** Writes expressions of Lua as expressions of JavaScript over `Operators`, which stand there as `$`. */
export class Expressions {
  readonly #scopes: Scopes;
  readonly #functionBody: (node: FunctionDeclaration) => string;

  constructor(scopes: Scopes, functionBody: (node: FunctionDeclaration) => string) {
    this.#scopes = scopes;
    this.#functionBody = functionBody;
  }

  /** One value. */
  one(node: Expression): string {
    switch (node.type) {
      case 'Identifier':
        return this.#scopes.read(node.name);
      case 'StringLiteral':
        return JSON.stringify(node.value);
      case 'NumericLiteral':
        return `${node.value}`;
      case 'BooleanLiteral':
        return `${node.value}`;
      case 'NilLiteral':
        return 'undefined';
      case 'VarargLiteral':
        return 'varargs[0]';
      case 'BinaryExpression':
        return this.#binary(node.operator, this.one(node.left), this.one(node.right));
      case 'LogicalExpression':
        return this.#logical(node.operator, this.one(node.left), this.one(node.right));
      case 'UnaryExpression':
        return this.#unary(node.operator, this.one(node.argument));
      case 'MemberExpression':
        return `$.index(${this.one(node.base)}, ${JSON.stringify(node.identifier.name)})`;
      case 'IndexExpression':
        return `$.index(${this.one(node.base)}, ${this.one(node.index)})`;
      case 'TableConstructorExpression':
        return this.#table(node);
      case 'FunctionDeclaration':
        return this.#functionBody(node);
      default:
        return `${this.call(node)}[0]`;
    }
  }

  /** A condition: true or false of JavaScript. */
  condition(node: Expression): string {
    if (node.type === 'LogicalExpression') {
      const operator = node.operator === 'and' ? '&&' : '||';
      return `(${this.condition(node.left)} ${operator} ${this.condition(node.right)})`;
    }
    if (node.type === 'UnaryExpression' && node.operator === 'not') return `!${this.condition(node.argument)}`;
    return `$.isTrue(${this.one(node)})`;
  }

  /** A list of which the last expression may give any number of values: the elements of an array. */
  list(nodes: readonly Expression[]): string {
    return nodes.map((node, i) => (i === nodes.length - 1 ? this.#last(node) : this.one(node))).join(', ');
  }

  isMultiple(node: Expression | undefined): boolean {
    return node?.type === 'VarargLiteral' || (node?.type.endsWith('CallExpression') ?? false);
  }

  /** A call: the array of its results. */
  call(node: Expression): string {
    const { base } = node as AnyCall;
    const line = node.loc?.start.line ?? 0;
    if (base.type === 'MemberExpression' && base.indexer === ':') {
      const self = this.#scopes.temporary();
      const method = `$.index(${self} = ${this.one(base.base)}, ${JSON.stringify(base.identifier.name)})`;
      return `$.callee(${method}, ${line})(${[self, this.list(argumentsOf(node as AnyCall))].filter(Boolean).join(', ')})`;
    }
    return `$.callee(${this.one(base)}, ${line})(${this.list(argumentsOf(node as AnyCall))})`;
  }

  #last(node: Expression): string {
    if (node.type === 'VarargLiteral') return '...varargs';
    return this.isMultiple(node) ? `...${this.call(node)}` : this.one(node);
  }

  #binary(operator: string, left: string, right: string): string {
    if (operator === '==') return `(${left} === ${right})`;
    if (operator === '~=') return `(${left} !== ${right})`;
    if (operator === '>' || operator === '>=') return this.#reversed(operator, left, right);
    const name = BINARY[operator];
    if (name === undefined) throw new Error(`the simulation has no Lua operator ${operator}`);
    return `$.${name}(${left}, ${right})`;
  }

  /** `a > b` is `b < a`; the left side is still evaluated first. */
  #reversed(operator: string, left: string, right: string): string {
    const first = this.#scopes.temporary();
    return `(${first} = ${left}, $.${operator === '>' ? 'lessThan' : 'atMost'}(${right}, ${first}))`;
  }

  #logical(operator: string, left: string, right: string): string {
    const value = this.#scopes.temporary();
    const test = `$.isTrue(${value} = ${left})`;
    return operator === 'and' ? `(${test} ? ${right} : ${value})` : `(${test} ? ${value} : ${right})`;
  }

  #unary(operator: string, argument: string): string {
    if (operator === 'not') return `!$.isTrue(${argument})`;
    return operator === '#' ? `$.length(${argument})` : `$.negate(${argument})`;
  }

  #table({ fields }: TableConstructorExpression): string {
    const list: Expression[] = [];
    const keyed: string[] = [];
    for (const field of fields) {
      if (field.type === 'TableValue') list.push(field.value);
      else if (field.type === 'TableKey') keyed.push(`[${this.one(field.key)}, ${this.one(field.value)}]`);
      else keyed.push(`[${JSON.stringify(field.key.name)}, ${this.one(field.value)}]`);
    }
    return `$.table([${this.list(list)}], [${keyed.join(', ')}])`;
  }
}

function argumentsOf(node: AnyCall): readonly Expression[] {
  if (node.type === 'StringCallExpression') return [node.argument];
  // Its types call it `arguments` of one expression: it is a list of one.
  return node.type === 'TableCallExpression' ? [node.arguments].flat() : node.arguments;
}
