import { type FunctionDeclaration, type Identifier, parse, type Statement } from 'luaparse';
import { Expressions } from './expressions';
import type { Operators } from './operators';
import { Scopes } from './scopes';
import { LuaError, type LuaValue } from './value';

/** A compiled script: run with the operators and what reads a global variable. */
export type Chunk = ($: Operators, globals: (name: string) => LuaValue) => readonly LuaValue[];

/** Compiles Lua 5.1 to a function of JavaScript. Raises a `LuaError` for a script that is no Lua. */
export function compile(source: string): Chunk {
  let body: Statement[];
  try {
    body = parse(source, { luaVersion: '5.1', encodingMode: 'pseudo-latin1', locations: true, comments: false }).body;
  } catch (error) {
    throw new LuaError(`Error compiling script (new function): user_script:${String(error)}`);
  }
  const text = new Compiler().chunk(body);
  return new Function('$', 'globals', text) as Chunk;
}

class Compiler {
  readonly #scopes = new Scopes();
  readonly #expressions = new Expressions(this.#scopes, (node: FunctionDeclaration) => this.#function(node));

  chunk(body: readonly Statement[]): string {
    this.#scopes.openFunction();
    const text = this.#block(body);
    return this.#withTemporaries(`${text}\nreturn [];`);
  }

  #withTemporaries(text: string): string {
    const temporaries = this.#scopes.closeFunction();
    return temporaries.length === 0 ? text : `let ${temporaries.join(', ')};\n${text}`;
  }

  #function({ parameters, body }: FunctionDeclaration): string {
    this.#scopes.openFunction();
    const names = parameters.map((one) =>
      one.type === 'VarargLiteral' ? '...varargs' : this.#scopes.declare(one.name),
    );
    const text = this.#block(body);
    return `((${names.join(', ')}) => {\n${this.#withTemporaries(`${text}\nreturn [];`)}\n})`;
  }

  #block(body: readonly Statement[]): string {
    this.#scopes.open();
    const text = body.map((statement) => this.#statement(statement)).join('\n');
    this.#scopes.close();
    return text;
  }

  #statement(node: Statement): string {
    const expressions = this.#expressions;
    switch (node.type) {
      case 'LocalStatement':
        return this.#declaration(node.variables, node.init);
      case 'AssignmentStatement':
        return this.#assignment(node);
      case 'CallStatement':
        return `${expressions.call(node.expression)};`;
      case 'ReturnStatement':
        return `return [${expressions.list(node.arguments)}];`;
      case 'BreakStatement':
        return 'break;';
      case 'DoStatement':
        return `{\n${this.#block(node.body)}\n}`;
      case 'WhileStatement':
        return `while (${expressions.condition(node.condition)}) {\n${this.#block(node.body)}\n}`;
      case 'IfStatement':
        return node.clauses
          .map((clause) => {
            if (clause.type === 'ElseClause') return `{\n${this.#block(clause.body)}\n}`;
            return `if (${expressions.condition(clause.condition)}) {\n${this.#block(clause.body)}\n}`;
          })
          .join(' else ');
      case 'FunctionDeclaration':
        return this.#namedFunction(node);
      case 'ForNumericStatement':
        return this.#forNumeric(node);
      case 'ForGenericStatement':
        return this.#forGeneric(node);
      default:
        throw new LuaError(`the simulation has no Lua statement ${node.type}`);
    }
  }

  #declaration(variables: readonly Identifier[], init: Parameters<Expressions['list']>[0]): string {
    const isPlain = init.length <= variables.length && !this.#expressions.isMultiple(init.at(-1));
    if (isPlain) {
      const values = variables.map((_, i) => (init[i] === undefined ? 'undefined' : this.#expressions.one(init[i])));
      // The names begin to count after the values: `local x = x` reads the outer one.
      return variables.map(({ name }, i) => `let ${this.#scopes.declare(name)} = ${values[i]};`).join('\n');
    }
    const values = `[${this.#expressions.list(init)}]`;
    return `let [${variables.map(({ name }) => this.#scopes.declare(name)).join(', ')}] = ${values};`;
  }

  #assignment(node: Extract<Statement, { type: 'AssignmentStatement' }>): string {
    const { variables, init } = node;
    const [only] = variables;
    const [value] = init;
    if (only !== undefined && value !== undefined && variables.length === 1 && init.length === 1) {
      return `${this.#store(only, this.#expressions.one(value))};`;
    }
    const values = this.#scopes.temporary();
    const stores = variables.map((variable, i) => `${this.#store(variable, `${values}[${i}]`)};`);
    return `${values} = [${this.#expressions.list(init)}];\n${stores.join('\n')}`;
  }

  #store(target: Extract<Statement, { type: 'AssignmentStatement' }>['variables'][number], value: string): string {
    const one = (node: Parameters<Expressions['one']>[0]): string => this.#expressions.one(node);
    if (target.type === 'MemberExpression') {
      return `$.setIndex(${one(target.base)}, ${JSON.stringify(target.identifier.name)}, ${value})`;
    }
    if (target.type === 'IndexExpression') return `$.setIndex(${one(target.base)}, ${one(target.index)}, ${value})`;
    const local = this.#scopes.local(target.name);
    if (local === undefined) throw new LuaError(`a script may not set the global variable '${target.name}'`);
    return `${local} = ${value}`;
  }

  #namedFunction(node: FunctionDeclaration): string {
    if (node.identifier?.type !== 'Identifier' || !node.isLocal) {
      throw new LuaError('a script may declare local functions only');
    }
    const name = this.#scopes.declare(node.identifier.name);
    return `let ${name};\n${name} = ${this.#function(node)};`;
  }

  #forNumeric(node: Extract<Statement, { type: 'ForNumericStatement' }>): string {
    const bound = (value: typeof node.start): string => `$.forNumber(${this.#expressions.one(value)})`;
    const [at, end, step] = [this.#scopes.temporary(), this.#scopes.temporary(), this.#scopes.temporary()];
    const head = `${at} = ${bound(node.start)}; ${end} = ${bound(node.end)}; ${step} = ${node.step === null ? 1 : bound(node.step)};`;
    this.#scopes.open();
    const variable = this.#scopes.declare(node.variable.name);
    const body = this.#block(node.body);
    this.#scopes.close();
    // A nested function may run the same loop again: the three are copied into the loop's own scope.
    return `${head}\nfor (let i$ = ${at}, e$ = ${end}, s$ = ${step}; s$ > 0 ? i$ <= e$ : i$ >= e$; i$ += s$) {\nlet ${variable} = i$;\n${body}\n}`;
  }

  #forGeneric(node: Extract<Statement, { type: 'ForGenericStatement' }>): string {
    const iterators = `[${this.#expressions.list(node.iterators)}]`;
    const line = node.loc?.start.line ?? 0;
    this.#scopes.open();
    const names = node.variables.map(({ name }) => this.#scopes.declare(name));
    const body = this.#block(node.body);
    this.#scopes.close();
    return `{
let [f$, s$, c$] = ${iterators};
for (;;) {
let [${names.join(', ')}] = $.callee(f$, ${line})(s$, c$);
if (${names[0]} === undefined) break;
c$ = ${names[0]};
${body}
}
}`;
  }
}
