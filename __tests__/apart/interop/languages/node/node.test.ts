import { testLanguage } from '../contract';
import { node } from './language';

testLanguage(node);
